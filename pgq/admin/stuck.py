"""Requeue what is stuck: a reap that says of each job why it was given back, or left alone."""

from collections.abc import Sequence
from typing import NamedTuple

from pgq.admin.proof import Life, name
from pgq.admin.reap import Reaping

OUTCOMES = {"pending": "requeued", "failed": "failed", "cancelled": "cancelled"}


class Unstuck(NamedTuple):
    """What became of one running job, and why."""

    id: int
    outcome: str
    """requeued, failed (no attempt was left), cancelled (as was asked), refused, or running."""
    worker_id: int | None
    reason: str


def explain(reaping: Reaping, left: Sequence[Life]) -> list[Unstuck]:
    """A row a job: those that were given back, then those whose worker lives."""
    rows = []
    for job in reaping.jobs:
        death = reaping.deaths.get(job.worker_id or 0)
        worker = name(job.worker_id, death and death.host, death and death.pid)
        reason = f"{worker}: {reaping.proof(job.worker_id)}"
        if job.error is not None:
            rows.append(Unstuck(job.job_id, "refused", job.worker_id, f"{job.error} ({reason})"))
        else:
            rows.append(Unstuck(job.job_id, OUTCOMES[job.status], job.worker_id, reason))
    known = {row.id for row in rows}  # in a dry run their workers are not marked dead
    return rows + [
        Unstuck(life.id, "running", life.worker_id, life.proof)
        for life in left
        if life.id not in known
    ]
