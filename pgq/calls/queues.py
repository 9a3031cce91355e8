"""Calls about enqueuing, outcomes and the schema."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pgq.calls import Call, Rows, scalar
from pgq.model import Enqueued, NewJob


class JobOutcome(NamedTuple):
    """Where a job stands now."""

    status: str
    result: Any
    last_error: str | None


def enqueue(job: NewJob, payload: str) -> Call[Enqueued]:
    """Enqueue one job whose payload is this JSON text."""
    params = {
        "kind": job.kind,
        "payload": payload,
        "queue": job.queue,
        "priority": job.priority,
        "delay": job.delay,
        "scheduled_at": job.scheduled_at,
        "max_attempts": job.max_attempts,
        "timeout": job.timeout,
        "unique_key": job.unique_key,
    }
    return Call("enqueue_job", params, lambda rows: Enqueued(rows[0][0], rows[0][1]))


def enqueue_many(jobs: Sequence[NewJob], payloads: Sequence[str]) -> Call[list[Enqueued]]:
    """Enqueue jobs in one statement; answers come in the order of the jobs."""
    params = {
        "kinds": [job.kind for job in jobs],
        "payloads": list(payloads),
        "queues": _column([job.queue for job in jobs]),
        "priorities": _column([job.priority or None for job in jobs]),
        "delays": _column([job.delay for job in jobs]),
        "scheduled_ats": _column([job.scheduled_at for job in jobs]),
        "max_attempts": _column([job.max_attempts for job in jobs]),
        "timeouts": _column([job.timeout for job in jobs]),
        "unique_keys": _column([job.unique_key for job in jobs]),
    }
    return Call("enqueue_jobs", params, _read_enqueued)


def _column(values: list[Any]) -> list[Any] | None:
    """A column that no job sets is not sent."""
    return values if any(value is not None for value in values) else None


def _read_enqueued(rows: Rows) -> list[Enqueued]:
    answers: list[Enqueued] = [Enqueued(0)] * len(rows)
    for place, job_id, duplicate in rows:
        answers[place - 1] = Enqueued(job_id, duplicate)
    return answers


def payload_limit() -> Call[int]:
    """The size that a payload's text may have, in bytes."""
    return Call("read_payload_limit", {}, scalar)


def outcome(job_id: int) -> Call[JobOutcome | None]:
    """Where a job stands, or None if there is none of this id."""
    return Call("read_outcome", {"id": job_id}, _read_outcome)


def _read_outcome(rows: Rows) -> JobOutcome | None:
    if not rows:
        return None
    status, result, last_error = rows[0]
    return JobOutcome(_text(status), result, last_error and _text(last_error))


def _text(value: str | bytes) -> str:
    """Text, also of a connection whose encoding is SQL_ASCII, which gives bytes."""
    return value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")


def schema_version() -> Call[int | None]:
    """The number of the newest migration in the database."""
    return Call("read_schema_version", {}, scalar)
