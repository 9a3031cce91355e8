"""Requeue: an operator sends jobs back."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg

from pgq.admin import batches
from pgq.admin.actor import actor
from pgq.admin.proof import may_run, name
from pgq.calls import Call, Rows


class Requeued(NamedTuple):
    """What became of one job."""

    id: int
    outcome: str
    holder: int | None
    """The unfinished job that has the unique key."""
    reason: str | None
    """The live worker that runs it, or that may still run what force took from it."""

    @property
    def ok(self) -> bool:
        """The job is pending now."""
        return self.outcome in ("requeued", "already pending")


def requeue(
    conn: psycopg.Connection[Any],
    ids: Sequence[int],
    *,
    force: bool = False,
    dry_run: bool = False,
) -> list[Requeued]:
    """Send jobs back to pending, due now, attempts from 0 again; a row an id.

    From running only when the worker is dead or gone, or with `force`, which takes the job from a
    live worker: its handler goes on, and what it ends with changes nothing.
    """

    def call(some: Sequence[int]) -> Call[list[Requeued]]:
        params = {"ids": list(some), "force": force, "actor": actor()}
        return Call("requeue_jobs", params, _read)

    return batches.run(conn, ids, call, dry_run=dry_run)


def _read(rows: Rows) -> list[Requeued]:
    return [
        Requeued(job_id, outcome, holder, worker_id and _who(worker_id, outcome))
        for job_id, outcome, holder, worker_id in rows
    ]


def _who(worker_id: int, outcome: str) -> str:
    if outcome == "running":
        return f"{name(worker_id, None, None)} runs it"
    return may_run(worker_id)
