"""Counting: a row a queue."""

from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from pgq import db
from pgq.calls import Call, Rows


class QueueRow(NamedTuple):
    """A queue's counts; the fields are the columns of count_queues.sql.

    `failed` are the dead letters there are; `failed_last_hour` those that came in the last hour.
    """

    queue: str
    ready: int
    scheduled: int
    running: int
    failed: int
    done_last_hour: int
    failed_last_hour: int
    retried_last_hour: int
    oldest_ready_at: datetime | None


def count_queues(conn: psycopg.Connection[Any]) -> list[QueueRow]:
    """The counts of every queue that has jobs or a row of its own, in order of name."""
    return db.run(conn, Call("count_queues", {}, _read))


def _read(rows: Rows) -> list[QueueRow]:
    return [QueueRow._make(row) for row in rows]
