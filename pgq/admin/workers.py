"""Workers: who lives, what each runs, and what is wrong with it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg

from pgq.admin.live import look
from pgq.admin.proof import name, seconds
from pgq.calls import Call, Rows


class WorkerRow(NamedTuple):
    """A worker; the fields are the columns of list_workers.sql.

    `state` is dead, stopped, silent (no beat for 4 seconds), trouble, draining, working or idle.
    """

    id: int
    state: str
    queues: list[str]
    kinds: list[str] | None
    running: int
    concurrency: int
    beat_age: timedelta
    lock_held: bool | None
    """Whether anybody holds the lock of its heartbeat; None if it could take none."""
    trouble: str | None
    host: str
    pid: int
    version: str
    started_at: datetime
    beat_at: datetime
    draining_at: datetime | None
    stopped_at: datetime | None
    died_at: datetime | None

    @property
    def lives(self) -> bool:
        """It has neither stopped nor been declared dead."""
        return self.stopped_at is None and self.died_at is None


def list_workers(
    conn: psycopg.Connection[Any],
    *,
    queue: str | None = None,
    host: str | None = None,
    ended: bool = False,
) -> list[WorkerRow]:
    """The workers that live, then those that died in the last hour, at most 100.

    `ended`: also those that stopped, and all of the last day.
    """
    params = {"queue": queue, "host": host, "all": ended}
    return look(conn, Call("list_workers", params, _read))


def _read(rows: Rows) -> list[WorkerRow]:
    return [WorkerRow._make(row) for row in rows]


def problems(workers: Sequence[WorkerRow]) -> list[str]:
    """What is wrong with workers that live, a line each; empty if all is well."""
    found = []
    for worker in workers:
        if not worker.lives:
            continue
        who = name(worker.id, worker.host, worker.pid)
        if worker.state == "silent":
            lock = {True: ", its lock is held", False: ", its lock is gone", None: ""}
            found.append(f"{who} is silent for {seconds(worker.beat_age)}{lock[worker.lock_held]}")
        if worker.trouble is not None:
            found.append(f"{who} has trouble: {worker.trouble}")
    return found
