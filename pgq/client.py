"""For applications: enqueue in your own transaction, and wait for a result.

Each operation is written once, as a generator of calls; `_drive` runs it on a plain connection
and `_drive_async` on an async one, so both do the same.
"""

import asyncio
import time
from collections.abc import Awaitable, Generator, Iterable
from datetime import datetime, timedelta
from typing import Any, TypeAlias, TypeVar, overload

import psycopg
from psycopg.pq import TransactionStatus

from pgq import db
from pgq.calls import Call
from pgq.calls import queues as calls
from pgq.errors import (
    JobCancelled,
    JobFailed,
    JobNotFound,
    PayloadError,
    ResultDropped,
    UsageError,
    WaitTimeout,
)
from pgq.model import MAX_NAME, Enqueued, NewJob, Status
from pgq.text import MAX_DURATION, as_object, dump_json, require_zone, safe

T = TypeVar("T")
Steps: TypeAlias = Generator[Call[Any] | float, Any, T]
"""Calls to run, and seconds to wait; ends with a value."""

Sync: TypeAlias = psycopg.Connection[Any]
Async: TypeAlias = psycopg.AsyncConnection[Any]

BATCH = 5000
"""Jobs per statement of enqueue_many, at most."""

BATCH_SIZE = 8_000_000
"""Characters of payload after which a statement of enqueue_many is sent."""

DEFAULT_PAYLOAD_LIMIT = 1_048_576
"""A payload below this needs no question to the database, which has the last word."""


@overload
def enqueue(
    conn: Sync,
    kind: str,
    payload: Any = ...,
    *,
    queue: str | None = ...,
    priority: int = ...,
    delay: timedelta | None = ...,
    scheduled_at: datetime | None = ...,
    max_attempts: int | None = ...,
    timeout: timedelta | None = ...,
    unique_key: str | None = ...,
) -> Enqueued: ...


@overload
def enqueue(
    conn: Async,
    kind: str,
    payload: Any = ...,
    *,
    queue: str | None = ...,
    priority: int = ...,
    delay: timedelta | None = ...,
    scheduled_at: datetime | None = ...,
    max_attempts: int | None = ...,
    timeout: timedelta | None = ...,
    unique_key: str | None = ...,
) -> Awaitable[Enqueued]: ...


def enqueue(
    conn: Sync | Async, kind: str, payload: Any = None, **options: Any
) -> Enqueued | Awaitable[Enqueued]:
    """Enqueue one job in the transaction that `conn` is in; await it on an async connection.

    `payload` is a dict, a dataclass or a pydantic model that stands for a JSON object of at most
    1 MB. `delay` (a timedelta) or `scheduled_at` (an aware datetime) say when it is due, by the
    database's clock. With `unique_key`, an unfinished job that has it already is answered as
    `duplicate`. The options are those of NewJob; what is left out comes from the kind's defaults.

    Raises UsageError before anything is sent for what no job can be.
    """
    job = NewJob(kind, {} if payload is None else payload, **options)
    return _dispatch(conn, _enqueue(job))


@overload
def enqueue_many(conn: Sync, jobs: Iterable[NewJob]) -> list[Enqueued]: ...
@overload
def enqueue_many(conn: Async, jobs: Iterable[NewJob]) -> Awaitable[list[Enqueued]]: ...


def enqueue_many(
    conn: Sync | Async, jobs: Iterable[NewJob]
) -> list[Enqueued] | Awaitable[list[Enqueued]]:
    """Enqueue many jobs, 5,000 a statement; answers come in the order of the jobs.

    All or none if `conn` is in a transaction, as it should be; in autocommit mode each statement
    stands alone. Raises UsageError that names the position (from 0) of a job that cannot be;
    the statements before it have been sent by then.
    """
    return _dispatch(conn, _enqueue_many(jobs))


@overload
def wait(conn: Sync, job_id: int, *, timeout: timedelta | None = ...) -> Any: ...
@overload
def wait(conn: Async, job_id: int, *, timeout: timedelta | None = ...) -> Awaitable[Any]: ...


def wait(conn: Sync | Async, job_id: int, *, timeout: timedelta | None = None) -> Any:
    """Wait until a job has ended, and give its result.

    Asks the database at growing intervals of 10 ms to 1 s; commit the enqueue first. Raises
    JobFailed, JobCancelled, JobNotFound, ResultDropped, or WaitTimeout after `timeout`.
    """
    _check_type("timeout", timeout, timedelta)
    return _dispatch(conn, _wait(conn, job_id, timeout))


def check(job: NewJob) -> str:
    """The JSON text of a job's payload; UsageError for what no job can be. Sends nothing."""
    _check_name("kind", job.kind)
    if job.queue is not None:
        _check_name("queue", job.queue)
    if job.unique_key is not None:
        _check_name("unique key", job.unique_key, longest=500)
    _check_number("priority", job.priority, -32768, 32767)
    if job.max_attempts is not None:
        _check_number("max_attempts", job.max_attempts, 1, 1_000_000)
    _check_type("delay", job.delay, timedelta)
    _check_type("timeout", job.timeout, timedelta)
    _check_type("scheduled_at", job.scheduled_at, datetime)
    if job.delay is not None and job.scheduled_at is not None:
        raise UsageError("give a delay or scheduled_at, not both")
    if job.delay is not None and not timedelta(0) <= job.delay <= MAX_DURATION:
        raise UsageError(f"delay: give a duration from 0 to {MAX_DURATION.days} days")
    if job.timeout is not None and not timedelta(0) < job.timeout <= timedelta(days=3650):
        raise UsageError("timeout: give a duration above 0 and at most 3650 days")
    if job.scheduled_at is not None:
        instant = require_zone(job.scheduled_at)
        if not 1900 <= instant.year <= 9998:
            raise UsageError("scheduled_at: give a time between the years 1900 and 9998")
    return dump_json(as_object(job.payload))


def _check_name(what: str, name: object, *, longest: int = MAX_NAME) -> None:
    if not isinstance(name, str):
        raise UsageError(f"{what}: must be text, not {type(name).__name__}")
    if not name or len(name) > longest:
        raise UsageError(f"{what}: give 1 to {longest} characters, not {len(name)}")
    if name.isascii() and name.isprintable():
        return
    try:
        dump_json(name)
    except PayloadError as error:
        raise UsageError(f"{what} '{safe(name)}': {error.problem.rstrip(',')}") from None


def _check_type(what: str, value: object, wanted: type) -> None:
    if value is not None and not isinstance(value, wanted):
        raise UsageError(f"{what}: give a {wanted.__name__}, not {type(value).__name__}")


def _check_number(what: str, number: object, low: int, high: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
        raise UsageError(f"{what}: give a whole number from {low} to {high}")


def _check_size(payload: str) -> Steps[None]:
    if len(payload) * 4 <= DEFAULT_PAYLOAD_LIMIT:
        return
    size = len(payload.encode())
    if size > DEFAULT_PAYLOAD_LIMIT:
        limit = yield calls.payload_limit()
        if size > limit:
            raise PayloadError(
                "",
                f"{size} bytes, and this database allows {limit}: store the data elsewhere and "
                "enqueue a reference to it, or raise pgq.max_payload_bytes",
            )


def _enqueue(job: NewJob) -> Steps[Enqueued]:
    payload = check(job)
    yield from _check_size(payload)
    answer: Enqueued = yield calls.enqueue(job, payload)
    return answer


def _enqueue_many(jobs: Iterable[NewJob]) -> Steps[list[Enqueued]]:
    answers: list[Enqueued] = []
    batch: list[NewJob] = []
    payloads: list[str] = []
    size = 0
    for position, job in enumerate(jobs):
        try:
            _check_type("job", job, NewJob)
            payload = check(job)
            yield from _check_size(payload)
        except UsageError as error:
            raise UsageError(f"job {position}: {error}") from None
        batch.append(job)
        payloads.append(payload)
        size += len(payload)
        if len(batch) >= BATCH or size >= BATCH_SIZE:
            answers.extend((yield calls.enqueue_many(batch, payloads)))
            batch, payloads, size = [], [], 0
    if batch:
        answers.extend((yield calls.enqueue_many(batch, payloads)))
    return answers


def _wait(conn: Sync | Async, job_id: int, timeout: timedelta | None) -> Steps[Any]:
    if not conn.autocommit and conn.info.transaction_status != TransactionStatus.IDLE:
        raise UsageError("wait: commit first; nobody can run a job that is not committed")
    deadline = None if timeout is None else time.monotonic() + timeout.total_seconds()
    pause = 0.01
    while True:
        outcome: calls.JobOutcome | None = yield calls.outcome(job_id)
        match outcome:
            case None:
                raise JobNotFound(job_id)
            case (Status.DONE, result, None):
                return result
            case (Status.DONE, _, str(note)):
                raise ResultDropped(job_id, safe(note))
            case (Status.FAILED, _, error):
                raise JobFailed(job_id, None if error is None else safe(error))
            case (Status.CANCELLED, _, _):
                raise JobCancelled(job_id)
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise WaitTimeout(job_id, outcome.status)
            pause = min(pause, left)
        yield pause
        pause = min(pause * 2, 1.0)


def _dispatch(conn: Sync | Async, steps: Steps[T]) -> T | Awaitable[T]:
    if isinstance(conn, psycopg.AsyncConnection):
        return _drive_async(conn, steps)
    return _drive(conn, steps)


def _drive(conn: Sync, steps: Steps[T]) -> T:
    answer: Any = None
    try:
        while True:
            step = steps.send(answer)
            if isinstance(step, float):
                if not conn.autocommit:
                    conn.rollback()  # only a look was made: see what others commit meanwhile
                time.sleep(step)
                answer = None
            else:
                answer = db.run(conn, step)
    except StopIteration as end:
        value: T = end.value
        return value


async def _drive_async(conn: Async, steps: Steps[T]) -> T:
    answer: Any = None
    try:
        while True:
            step = steps.send(answer)
            if isinstance(step, float):
                if not conn.autocommit:
                    await conn.rollback()  # only a look was made: see what others commit meanwhile
                await asyncio.sleep(step)
                answer = None
            else:
                answer = await db.run_async(conn, step)
    except StopIteration as end:
        value: T = end.value
        return value
