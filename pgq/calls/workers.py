"""Calls about workers: registration, heartbeat, reaping, waiting."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from pgq.calls import Call, Rows, nothing, scalar


@dataclass(frozen=True, slots=True)
class KindDefaults:
    """What jobs of a kind get when they leave it out at enqueue."""

    kind: str
    queue: str | None
    max_attempts: int | None
    timeout: timedelta | None


class Beat(NamedTuple):
    """What a heartbeat heard; see sql/functions/heartbeat.sql."""

    alive: bool
    cancelled: list[int]
    killed: list[int]
    overdue: bool
    reap_in: float | None
    forgiven: timedelta | None


class Session(NamedTuple):
    """One session of the server; a process identifier alone may come again."""

    pid: int
    since: datetime


class Reaped(NamedTuple):
    """A job of a dead worker, and what became of it."""

    job_id: int
    queue: str
    kind: str
    worker_id: int | None
    status: str
    error: str | None
    """Why the database refused to give it back: it is `running` still."""


def register(
    *,
    host: str,
    pid: int,
    version: str,
    queues: Sequence[str],
    kinds: Sequence[str] | None,
    concurrency: int,
    lock_key: int | None,
) -> Call[int]:
    """Make a worker known; gives its id."""
    params = {
        "host": host,
        "pid": pid,
        "version": version,
        "queues": list(queues),
        "kinds": None if kinds is None else list(kinds),
        "concurrency": concurrency,
        "lock_key": lock_key,
    }
    return Call("register_worker", params, scalar)


def declare_kinds(kinds: Sequence[KindDefaults]) -> Call[None]:
    """Record the defaults of kinds."""
    params = {
        "kinds": [kind.kind for kind in kinds],
        "queues": [kind.queue for kind in kinds],
        "max_attempts": [kind.max_attempts for kind in kinds],
        "timeouts": [kind.timeout for kind in kinds],
    }
    return Call("declare_kinds", params, nothing)


def heartbeat(
    worker_id: int, *, lock_key: int | None, draining: bool, trouble: str | None = None
) -> Call[Beat]:
    """Give a sign of life and hear what the worker must know."""
    params = {
        "worker_id": worker_id,
        "lock_key": lock_key,
        "draining": draining,
        "trouble": trouble,
    }
    return Call("beat_worker", params, lambda rows: Beat._make(rows[0]))


def reap(*, limit: int = 1000, watcher: int | None = None) -> Call[list[Reaped]]:
    """Declare dead workers dead and give back at most `limit` of their jobs.

    `watcher`: the worker that does it.
    """
    return Call("reap_jobs", {"limit": limit, "watcher": watcher}, _read_reaped)


class Look(NamedTuple):
    """What one look at the workers saw; see sql/queries/watch_workers.sql."""

    at: datetime
    session_age: timedelta
    suspects: list[datetime]
    """The last beat of each worker that seems dead."""


def watch() -> Call[Look]:
    """Look whether workers seem dead."""
    return Call("watch_workers", {}, lambda rows: Look._make(rows[0]))


def reap_by_hand(
    *, limit: int, seen_at: datetime, began_at: datetime, actor: str, rehearsal: bool
) -> Call[list[Reaped]]:
    """Reap as an operator, who saw the database's clock at `seen_at` last.

    `rehearsal`: the caller undoes it.
    """
    params = {
        "limit": limit,
        "seen_at": seen_at,
        "began_at": began_at,
        "actor": actor,
        "rehearsal": rehearsal,
    }
    return Call("reap_by_hand", params, _read_reaped)


def _read_reaped(rows: Rows) -> list[Reaped]:
    return [Reaped._make(row) for row in rows]


def outwait_claims(worker_id: int) -> Call[bool]:
    """Whether no claim of this worker is under way."""
    return Call("outwait_claims", {"worker_id": worker_id}, scalar)


def set_waiting(worker_id: int, *, waiting: bool) -> Call[None]:
    """Say whether an enqueue should wake this worker."""
    return Call("set_waiting", {"worker_id": worker_id, "waiting": waiting}, nothing)


def stop(worker_id: int) -> Call[None]:
    """Say farewell."""
    return Call("stop_worker", {"worker_id": worker_id}, nothing)


def tidy() -> Call[None]:
    """Forget workers and counters of long ago."""
    return Call("tidy", {}, nothing)


def lock(lock_key: int) -> Call[None]:
    """Take the session lock by which others see that this process lives."""
    return Call("lock_worker", {"lock_key": lock_key}, nothing)


def session() -> Call[Session]:
    """The session that answers."""
    return Call("read_session", {}, lambda rows: Session._make(rows[0]))


def end_session(given_up: Session) -> Call[None]:
    """End a session to which nobody listens any more, and what is still on the way to it."""
    return Call("end_session", given_up._asdict(), nothing)


def server_clock() -> Call[datetime]:
    """The time now, by the clock of the server."""
    return Call("read_clock", {}, scalar)


def prepare_session() -> Call[None]:
    """Settings for a session of a worker's own."""
    return Call("prepare_session", {}, nothing)
