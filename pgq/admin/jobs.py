"""Listing jobs: the newest that match."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg

from pgq.admin.live import look
from pgq.calls import Call, Rows
from pgq.model import Status


class JobRow(NamedTuple):
    """A job in a list; the fields are the columns of list_jobs.sql."""

    id: int
    queue: str
    kind: str
    status: str
    priority: int
    attempts: int
    max_attempts: int
    created_at: datetime
    scheduled_at: datetime
    finished_at: datetime | None
    worker_id: int | None
    last_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs; what is None matches all."""

    queue: str | None = None
    status: Status | None = None
    kind: str | None = None
    error: str | None = None
    """A part of the last error, in any case."""
    since: datetime | timedelta | None = None
    """Enqueued at this time or later, or at most this long ago by the database's clock."""


_STATEMENTS = {
    Status.PENDING: "list_pending_jobs",
    Status.RUNNING: "list_running_jobs",
    Status.FAILED: "list_failed_jobs",
}


def list_jobs(conn: psycopg.Connection[Any], which: JobFilter, *, limit: int) -> list[JobRow]:
    """The newest jobs that match, at most `limit`, newest first."""
    params = {
        "queue": which.queue,
        "kind": which.kind,
        "error": which.error,
        "since": which.since if isinstance(which.since, datetime) else None,
        "age": which.since if isinstance(which.since, timedelta) else None,
        "limit": limit,
    }
    name = _STATEMENTS.get(which.status) if which.status else None
    if name is None:
        name = "list_jobs"
        params["status"] = which.status
    return look(conn, Call(name, params, _read))


def _read(rows: Rows) -> list[JobRow]:
    return [JobRow._make(row) for row in rows]
