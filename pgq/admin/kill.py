"""Kill: an operator makes jobs end."""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import psycopg

from pgq import db
from pgq.admin import batches
from pgq.admin.actor import actor
from pgq.admin.proof import may_run, name, seconds
from pgq.calls import Call, Rows

SHORTEST, LONGEST = 0.1, 1.0
"""Seconds between two looks."""


class Killed(NamedTuple):
    """What became of one job."""

    id: int
    outcome: str
    """killed; cancelled (it did not run); already done, failed or cancelled; requeued (somebody
    else did, meanwhile); requested; still running; or not found."""
    reason: str | None
    """What ended it, or who runs it still, or may."""

    @property
    def ok(self) -> bool:
        """The job has ended without being done, or its worker will hear of it."""
        return self.outcome in ("killed", "cancelled", "requested", "already cancelled")


class _Answer(NamedTuple):
    """One row of kill_jobs.sql."""

    id: int
    outcome: str
    worker_id: int | None


class _Ending(NamedTuple):
    """How far a job has come; one row of read_endings.sql."""

    id: int
    status: str
    told: bool
    last_error: str | None
    worker_id: int | None
    host: str | None
    pid: int | None
    beat_age: timedelta | None
    trouble: str | None

    @property
    def awaited(self) -> bool:
        return self.status == "running" and self.told


def kill(
    conn: psycopg.Connection[Any],
    ids: Sequence[int],
    *,
    force: bool = False,
    wait: timedelta = timedelta(0),
    dry_run: bool = False,
    waiting: Callable[[int], None] = lambda _: None,
) -> list[Killed]:
    """End jobs whatever it takes, and wait that long for those that run; a row an id.

    `waiting` is told for how many, when that begins.
    `force` takes running jobs from their workers at once: a handler may go on, and what it ends
    with changes nothing. A dry run waits for nothing, and says what would be asked.
    """

    def call(some: Sequence[int]) -> Call[list[_Answer]]:
        params = {"ids": list(some), "force": force, "actor": actor()}
        return Call("kill_jobs", params, lambda rows: [_Answer._make(row) for row in rows])

    answers = batches.run(conn, ids, call, dry_run=dry_run)
    told = [answer.id for answer in answers if answer.outcome == "requested"]
    endings: dict[int, _Ending] = {}
    if wait and told and not dry_run:
        waiting(len(told))
        endings = _await(conn, told, wait)
    return [_result(answer, endings.get(answer.id)) for answer in answers]


def _await(conn: psycopg.Connection[Any], ids: list[int], wait: timedelta) -> dict[int, _Ending]:
    """Look at these jobs until all have ended or the time is over; where each was seen last."""
    deadline = time.monotonic() + wait.total_seconds()
    endings: dict[int, _Ending] = {}
    pause = SHORTEST
    while ids:
        seen = _look(conn, ids)
        endings |= {ending.id: ending for ending in seen}
        ids = [ending.id for ending in seen if ending.awaited]
        left = deadline - time.monotonic()
        if not ids or left <= 0:
            break
        time.sleep(min(pause, left))
        pause = min(pause * 2, LONGEST)
    return endings


def _look(conn: psycopg.Connection[Any], ids: list[int]) -> list[_Ending]:
    return db.run(conn, Call("read_endings", {"ids": ids}, _read))


def _read(rows: Rows) -> list[_Ending]:
    return [_Ending._make(row) for row in rows]


def _result(answer: _Answer, ending: _Ending | None) -> Killed:
    """What to say of a job: by the answer, and by what was seen of it last."""
    match ending:
        case None if answer.outcome == "cancelled" and answer.worker_id is not None:
            return Killed(answer.id, "killed", may_run(answer.worker_id))
        case None:
            return Killed(answer.id, answer.outcome, None)
        case _Ending(status="cancelled"):
            return Killed(answer.id, "killed", ending.last_error)
        case _Ending(awaited=True):
            return Killed(answer.id, "still running", _runs(ending))
        case _Ending(status="pending" | "running"):
            return Killed(answer.id, "requeued", None)
        case _:
            return Killed(answer.id, f"already {ending.status}", ending.last_error)


def _runs(ending: _Ending) -> str:
    """Who runs a job, when that was heard of last, and what is wrong with it."""
    who = name(ending.worker_id, ending.host, ending.pid)
    if ending.beat_age is None:
        return f"{who} is unknown"
    beat = f"{who} beat {seconds(ending.beat_age)} ago"
    return f"{beat}: {ending.trouble}" if ending.trouble else beat
