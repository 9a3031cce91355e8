"""What tells that a worker is dead, or that it lives: the facts, and their text for people."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg

from pgq import db
from pgq.admin.live import look
from pgq.calls import Call
from pgq.text import format_duration, format_time


class Death(NamedTuple):
    """How a worker ended; the fields are the columns of explain_deaths.sql."""

    id: int
    host: str
    pid: int
    died_at: datetime | None
    stopped_at: datetime | None
    silent: timedelta | None
    lock_held: bool | None
    forgiven: timedelta

    @property
    def proof(self) -> str:
        """What tells that it is gone."""
        if self.stopped_at is not None:
            return f"stopped at {format_time(self.stopped_at)}"
        if self.silent is None:
            return "not known to be dead"
        silent = f"silent for {seconds(self.silent)}"
        if self.lock_held is False:
            return f"{silent}, its lock is gone"
        return f"{silent}, and {format_duration(self.forgiven)} are forgiven"


class Life(NamedTuple):
    """A running job of a worker that is not dead; the fields are the columns of list_lives.sql."""

    id: int
    worker_id: int
    host: str
    pid: int
    silent: timedelta
    lock_held: bool | None
    forgiven: timedelta

    @property
    def proof(self) -> str:
        """What tells that its worker lives."""
        lock = {True: "its lock is held", False: "its lock is gone", None: "it has no lock"}
        return (
            f"{name(self.worker_id, self.host, self.pid)} beat {seconds(self.silent)} ago, "
            f"{lock[self.lock_held]}, {format_duration(self.forgiven)} are forgiven"
        )


def name(worker_id: int | None, host: str | None, pid: int | None) -> str:
    """A worker for people: w-7 (web-1, pid 4711)."""
    if worker_id is None:
        return "no worker"
    return f"w-{worker_id}" + (f" ({host}, pid {pid})" if host else "")


def may_run(worker_id: int) -> str:
    """Of a job that was taken from a live worker."""
    return f"{name(worker_id, None, None)} may still run it"


def seconds(value: timedelta) -> str:
    """A duration for people, without parts of a second from 10 seconds on."""
    exact = value.total_seconds()
    return format_duration(timedelta(seconds=round(exact, 1 if exact < 10 else 0)))


def deaths(conn: psycopg.Connection[Any], worker_ids: Iterable[int]) -> dict[int, Death]:
    """How these workers ended, by id; nothing is known of those that are left out."""
    call = Call(
        "explain_deaths",
        {"ids": sorted(worker_ids)},
        lambda rows: {row[0]: Death._make(row) for row in rows},
    )
    return db.run(conn, call)


def lives(conn: psycopg.Connection[Any], *, limit: int) -> list[Life]:
    """The jobs that have run longest under workers that are not dead, at most `limit`."""
    return look(
        conn, Call("list_lives", {"limit": limit}, lambda rows: [Life._make(row) for row in rows])
    )
