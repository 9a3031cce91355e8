"""What a handler's return value or exception means. Pure."""

import traceback
from dataclasses import replace
from datetime import timedelta
from types import CoroutineType
from typing import Any

from pgq.errors import PayloadError
from pgq.model import Buried, Cancelled, ClaimedJob, Done, Failed, Snoozed, Verdict
from pgq.policy import retry_delay
from pgq.registry import Cancel, Fail, Handler, Retry
from pgq.registry.binding import Misfit
from pgq.registry.outcomes import HandlerSignal, Snooze
from pgq.runner.interrupt import Stop, interrupted
from pgq.text import dump_json, storable

MAX_RESULT = 1_048_576
"""Longest JSON text of a result, in bytes, that is kept."""

MAX_ERROR = 2_000
MAX_TRACEBACK = 20_000

DONE = Done()

UNAWAITED = (
    "it returned a coroutine that nobody awaits, so its work is not done: make the handler an "
    "`async def`, and so what decorates it"
)


def returned(value: Any) -> Verdict:
    """What a handler's return value means: a snooze, or done with a result.

    The work is done whatever the result is: one that cannot be kept is dropped with a note, since
    to run the job again would repeat its side effects. But a coroutine is work that has not begun.
    """
    if value is None:
        return DONE
    if isinstance(value, Snooze):
        return Snoozed(value.delay)
    if isinstance(value, CoroutineType):
        value.close()
        return Buried(UNAWAITED)
    try:
        text = dump_json(value, what="result")
    except PayloadError as error:
        return Done(note=f"result dropped: {storable(str(error), MAX_ERROR)}")
    except BaseException as error:  # noqa: BLE001 - how a value is written is its own code
        return Done(note=f"result dropped: {storable(describe(error), MAX_ERROR)}")
    size = len(text.encode())
    if size > MAX_RESULT:
        return Done(note=f"result dropped: {size} bytes, and at most {MAX_RESULT} are kept")
    return Done(result=text)


def left(handler: Handler, job: ClaimedJob, stop: Stop, error: BaseException) -> Verdict:
    """What an exception means that left a handler which was perhaps asked to stop.

    A handler that raised after it was asked has given up, and ends as what was asked for first,
    however it gave up: CancelledError, a query that was cancelled, an error of its cleaning up, and
    pgq.Cancel too, which would otherwise lose the job whenever its worker is stopped.
    """
    if stop.cause is None:
        return raised(handler, job, error)
    verdict = interrupted(job, stop)
    if isinstance(verdict, Failed):
        return replace(_failed(handler, job, verdict.error, error), timed_out=True)
    return verdict


def raised(handler: Handler, job: ClaimedJob, error: BaseException) -> Verdict:
    """What an exception that left a handler means."""
    match error:
        case Cancel():
            return Cancelled(_reason(error))
        case Fail():
            return Buried(_reason(error), trace(error))
        case Misfit():
            return Buried(storable(f"payload does not fit: {error}", MAX_ERROR))
        case Retry(after=timedelta() as after):
            return Failed(_reason(error), trace(error), after)
        case Retry():
            return _failed(handler, job, _reason(error), error)
        case _:
            return _failed(handler, job, storable(describe(error), MAX_ERROR), error)


def _reason(error: HandlerSignal) -> str:
    """What a handler's signal says; an application may give anything, and derive from these."""
    return storable(_text(error.reason) or describe(error), MAX_ERROR)


def _failed(handler: Handler, job: ClaimedJob, shown: str, error: BaseException) -> Failed:
    return with_policy(handler, job, Failed(shown, trace(error)))


def with_policy(handler: Handler, job: ClaimedJob, failed: Failed) -> Failed:
    """A failure that does not say itself when to retry, with the wait of the handler's policy."""
    if failed.delay is not None:
        return failed
    try:
        return replace(failed, delay=retry_delay(handler.retry, job.attempts))
    except BaseException as broken:  # noqa: BLE001 - the policy is the application's code
        broken_too = f" (and its retry policy failed: {storable(describe(broken), 200)})"
        return replace(failed, error=failed.error + broken_too)


def mishap(error: BaseException) -> Failed:
    """The end of a job that its runner could not run as it should."""
    return Failed(storable(describe(error), MAX_ERROR))


def describe(error: BaseException) -> str:
    """An exception in short: its type and its text."""
    text = _text(error)
    name = type(error).__qualname__
    return f"{name}: {text}" if text else name


def _text(value: object) -> str:
    try:
        return str(value)
    except BaseException:  # noqa: BLE001 - __str__ is the application's code
        return "(its text cannot be read)"


def trace(error: BaseException) -> str:
    """The traceback, cut in the middle if it is long."""
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001 - __str__ and __repr__ are the application's code
        text = f"{type(error).__qualname__} (its traceback cannot be written)"
    return storable(text, MAX_TRACEBACK)
