"""Counting: a row a queue."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg

from pgq.admin.live import look
from pgq.calls import Call, Rows


class QueueRow(NamedTuple):
    """A queue's counts; the fields are the columns of count_queues.sql.

    `failed` are the dead letters there are; `failed_1h` those that came in the last hour.
    `ready` jobs are due; the oldest of them says how far behind the workers are.
    """

    queue: str
    ready: int
    scheduled: int
    running: int
    failed: int
    done_1h: int
    failed_1h: int
    retried_1h: int
    oldest_ready_at: datetime | None
    oldest_ready_age: timedelta | None


def count_queues(conn: psycopg.Connection[Any]) -> list[QueueRow]:
    """The counts of every queue that has jobs or a row of its own, in order of name."""
    return look(conn, Call("count_queues", {}, _read))


def _read(rows: Rows) -> list[QueueRow]:
    return [QueueRow._make(row) for row in rows]
