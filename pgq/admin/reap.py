"""Reap: dead workers are declared dead, and their jobs given back."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg

from pgq import db
from pgq.admin.actor import actor
from pgq.admin.proof import Death, deaths, name
from pgq.calls import workers as calls
from pgq.calls.workers import Look, Reaped
from pgq.errors import Conflict

LIMIT = 1000
"""Jobs per transaction: their rows stay locked until its end."""

WATCHED = timedelta(seconds=4)
"""Watched without a pause for so long, silence is silence."""

BLINK = timedelta(seconds=2)
"""Between two looks that are further apart the server, or this process, may have stood still."""

SESSION = timedelta(seconds=5)
"""A younger session judges nobody (sql/functions/declare_dead.sql)."""

PAUSE = 0.5
"""Seconds between two looks."""

LOOKS = 60
"""So many looks are taken before a judgement, at most."""


class Given(NamedTuple):
    """What became of the jobs of one dead worker; `proof` says what tells that it is dead."""

    worker_id: int | None
    host: str | None
    pid: int | None
    proof: str
    pending: int
    failed: int
    cancelled: int
    refused: int


@dataclass(slots=True)
class Reaping:
    """What one reap did."""

    jobs: list[Reaped] = field(default_factory=list)
    deaths: dict[int, Death] = field(default_factory=dict)
    """Of the workers that are still known."""
    unjudged: int = 0
    """Workers that were silent for long enough, and were not declared dead nevertheless."""
    cut: bool = False
    """A rehearsal that saw no more than its limit."""

    @property
    def refused(self) -> list[Reaped]:
        """The jobs that the database refused to give back."""
        return [job for job in self.jobs if job.error is not None]

    def proof(self, worker_id: int | None) -> str:
        """What tells that this worker is dead."""
        if worker_id is None:
            return "nobody's"
        death = self.deaths.get(worker_id)
        return "unknown" if death is None else death.proof

    def by_worker(self) -> list[Given]:
        """A row a dead worker."""
        statuses: dict[int | None, list[str]] = {}
        for job in self.jobs:
            statuses.setdefault(job.worker_id, []).append(job.status)
        return [
            self._given(worker_id, statuses[worker_id])
            for worker_id in sorted(statuses, key=lambda given: given or 0)
        ]

    def _given(self, worker_id: int | None, statuses: list[str]) -> Given:
        death = self.deaths.get(worker_id or 0)
        return Given(
            worker_id,
            death and death.host,
            death and death.pid,
            self.proof(worker_id),
            *(statuses.count(status) for status in ("pending", "failed", "cancelled", "running")),
        )


class Watch:
    """Tells from one look after another when the silent may be judged. Pure.

    Every time is the database's: whether the server stood still, its host, this process or the
    host of this process, the next look comes late by that clock, and watching begins anew. How
    long each worker has been silent is for the database to judge, of each by itself.
    """

    def __init__(self) -> None:
        self._since: datetime | None = None
        self._seen: datetime | None = None

    def sees(self, look: Look) -> bool:
        """Take the next look; whether it is time to judge."""
        if self._since is None or self._seen is None or look.at - self._seen > BLINK:
            self._since = look.at
        self._seen = look.at
        watched = look.at - self._since >= WATCHED and look.session_age >= SESSION
        return watched or not look.suspects


def reap(
    conn: psycopg.Connection[Any],
    *,
    dry_run: bool = False,
    waiting: Callable[[], None] = lambda: None,
) -> Reaping:
    """Declare dead workers dead and give their jobs back, in batches until none is left.

    Where a worker seems dead, all are watched for 5 seconds first; `waiting` is called before. Who
    falls silent meanwhile is left to the next reap. A dry run takes the first batch and gives it
    back: nothing is changed. The connection is in no transaction, and begins its own at
    READ COMMITTED.
    """
    reaping, watch = Reaping(), Watch()
    look = _watch(conn, watch, waiting)
    began_at = look.at
    while _batch(conn, reaping, seen_at=look.at, began_at=began_at, dry_run=dry_run):
        look = _watch(conn, watch, waiting)
    if not dry_run:
        left = db.run(conn, calls.watch()).suspects
        reaping.unjudged = sum(beat_at < look.at - WATCHED for beat_at in left)
    return reaping


def _watch(conn: psycopg.Connection[Any], watch: Watch, waiting: Callable[[], None]) -> Look:
    """Look until it is time to judge; gives the last look."""
    for number in range(LOOKS):
        look = db.run(conn, calls.watch())
        if watch.sees(look):
            return look
        if number == 0:
            waiting()
        time.sleep(PAUSE)
    raise Conflict("the database answered too slowly to tell who is dead: try again")


def _batch(
    conn: psycopg.Connection[Any],
    reaping: Reaping,
    *,
    seen_at: datetime,
    began_at: datetime,
    dry_run: bool,
) -> bool:
    """Give back some jobs; whether there may be more."""
    call = calls.reap_by_hand(
        limit=LIMIT, seen_at=seen_at, began_at=began_at, actor=actor(), rehearsal=dry_run
    )
    with db.driver_errors(), conn.transaction(force_rollback=dry_run):
        jobs = db.run(conn, call)
        owners = {job.worker_id for job in jobs if job.worker_id is not None}
        reaping.deaths |= deaths(conn, owners - reaping.deaths.keys())
    reaping.jobs += jobs
    reaping.cut = dry_run and len(jobs) == LIMIT
    return len(jobs) == LIMIT and not dry_run


def describe(given: Given, *, dry_run: bool = False) -> str:
    """A dead worker and what became of its jobs, or would, for people."""
    would = "would be " if dry_run else ""
    counts = {
        "given back": given.pending,
        "failed with no attempt left": given.failed,
        "cancelled as was asked": given.cancelled,
        "refused by the database": given.refused,
    }
    parts = [f"{count} {_jobs(count)} {would}{what}" for what, count in counts.items() if count]
    return f"{name(given.worker_id, given.host, given.pid)}, {given.proof}: {', '.join(parts)}"


def _jobs(count: int) -> str:
    return "job" if count == 1 else "jobs"
