"""Showing one job: all that is kept about it."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg

from pgq import db
from pgq.calls import Call, Rows
from pgq.errors import JobNotFound
from pgq.text import Unreadable


class JobDetail(NamedTuple):
    """One job and its worker; the fields are the columns of show_job.sql."""

    id: int
    queue: str
    kind: str
    status: str
    priority: int
    attempts: int
    max_attempts: int
    snoozes: int
    losses: int
    unique_key: str | None
    timeout: timedelta | None
    created_at: datetime
    scheduled_at: datetime
    locked_at: datetime | None
    cancel_requested_at: datetime | None
    kill_requested_at: datetime | None
    finished_at: datetime | None
    updated_at: datetime
    worker_id: int | None
    worker_host: str | None
    worker_pid: int | None
    progress: Any
    """What the handler of the latest attempt last said: `{"fraction": 0.4, "note": "resizing"}`."""
    payload: dict[str, Any] | str
    """Its JSON text where that cannot be read."""
    result: Any
    last_error: str | None


class AttemptRow(NamedTuple):
    """An attempt that did not succeed; the fields are the columns of list_attempts.sql."""

    attempt: int
    outcome: str
    worker_id: int | None
    started_at: datetime | None
    finished_at: datetime
    error: str
    traceback: str | None
    output: str | None
    """The end of what it wrote or logged."""


def show_job(conn: psycopg.Connection[Any], job_id: int) -> tuple[JobDetail, list[AttemptRow]]:
    """A job and its attempts that did not succeed, oldest first; JobNotFound if there is none."""
    detail = db.run(conn, Call("show_job", {"id": job_id}, _read_detail))
    if detail is None:
        raise JobNotFound(job_id)
    return detail, db.run(conn, Call("list_attempts", {"id": job_id}, _read_attempts))


def _read_detail(rows: Rows) -> JobDetail | None:
    if not rows:
        return None
    detail = JobDetail._make(rows[0])
    if isinstance(detail.payload, Unreadable):
        return detail._replace(payload=detail.payload.text)
    return detail


def _read_attempts(rows: Rows) -> list[AttemptRow]:
    return [AttemptRow._make(row) for row in rows]
