"""What becomes of a job by what its handler returns and raises, on the loop and in a thread."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NoReturn, TypeAlias

import pytest

import pgq
from tests.support import jobs
from tests.support.jobs import Connection
from tests.support.workers import drain
from tests.worker.conftest import WorkOff

AT_ONCE = timedelta(0)
HOUR = timedelta(hours=1)

Style: TypeAlias = Callable[[Callable[[], Any]], Callable[..., Any]]


def on_the_loop(body: Callable[[], Any]) -> Callable[..., Any]:
    async def handler() -> Any:
        return body()

    return handler


def in_a_thread(body: Callable[[], Any]) -> Callable[..., Any]:
    def handler() -> Any:
        return body()

    return handler


@pytest.fixture(params=[on_the_loop, in_a_thread])
def style(request: pytest.FixtureRequest) -> Style:
    """Makes an async or a plain handler of a function."""
    made: Style = request.param
    return made


def raising(error: BaseException) -> Callable[[], NoReturn]:
    def body() -> NoReturn:
        raise error

    return body


def test_a_returned_value_is_the_result(style: Style, work_off: WorkOff) -> None:
    row = work_off(style(lambda: {"sent": 3}))

    assert (row["status"], row["result"], row["attempts"]) == ("done", {"sent": 3}, 1)
    assert row["lease"] is None
    assert row["finished_at"] >= row["locked_at"]


def test_a_failed_attempt_waits_for_the_default_backoff(
    style: Style, work_off: WorkOff, queue: Connection
) -> None:
    row = work_off(style(raising(ValueError("no luck"))))

    assert (row["status"], row["attempts"]) == ("pending", 1)
    assert row["last_error"] == "ValueError: no luck"
    assert HOUR > jobs.due_in(queue, row["id"]) > timedelta(seconds=30)
    (attempt,) = jobs.attempts(queue, row["id"])
    assert attempt["outcome"] == "failed"
    assert "raise error" in attempt["traceback"]


@pytest.mark.parametrize("retry", [HOUR, [HOUR], lambda attempt: attempt * HOUR])
def test_a_handlers_own_policy_says_when_to_retry(
    style: Style, work_off: WorkOff, queue: Connection, retry: Any
) -> None:
    row = work_off(style(raising(ValueError("no luck"))), retry=retry)

    assert row["status"] == "pending"
    assert HOUR >= jobs.due_in(queue, row["id"]) > 0.9 * HOUR


def test_a_broken_policy_leaves_the_default_backoff(
    style: Style, work_off: WorkOff, queue: Connection
) -> None:
    row = work_off(style(raising(ValueError("no luck"))), retry=lambda attempt: 1 / (attempt - 1))

    assert row["last_error"].startswith("ValueError: no luck (and its retry policy failed: Zero")
    assert HOUR > jobs.due_in(queue, row["id"]) > timedelta(seconds=30)


def test_the_last_attempt_buries_the_job_and_keeps_the_error(
    style: Style, work_off: WorkOff, queue: Connection
) -> None:
    row = work_off(style(raising(ValueError("no luck"))), retry=AT_ONCE, max_attempts=3)

    assert (row["status"], row["attempts"]) == ("failed", 3)
    assert row["last_error"] == "ValueError: no luck"
    assert [attempt["attempt"] for attempt in jobs.attempts(queue, row["id"])] == [1, 2, 3]
    assert jobs.counted(queue) == {"done": 0, "failed": 1, "retried": 2}


def test_fail_buries_whatever_attempts_are_left(
    style: Style, work_off: WorkOff, queue: Connection
) -> None:
    row = work_off(style(raising(pgq.Fail("no such address"))))

    assert (row["status"], row["last_error"]) == ("failed", "no such address")
    assert len(jobs.attempts(queue, row["id"])) == 1


def test_cancel_ends_the_job_as_cancelled(style: Style, work_off: WorkOff) -> None:
    row = work_off(style(raising(pgq.Cancel("the order is gone"))))

    assert (row["status"], row["last_error"]) == ("cancelled", "the order is gone")


def test_retry_says_when_the_next_attempt_is_due(
    style: Style, work_off: WorkOff, queue: Connection
) -> None:
    row = work_off(style(raising(pgq.Retry("busy", after=HOUR))))

    assert (row["status"], row["attempts"], row["last_error"]) == ("pending", 1, "busy")
    assert HOUR >= jobs.due_in(queue, row["id"]) > 0.9 * HOUR


def test_retry_without_a_time_follows_the_policy(
    style: Style, work_off: WorkOff, queue: Connection
) -> None:
    row = work_off(style(raising(pgq.Retry("busy"))), retry=HOUR)

    assert HOUR >= jobs.due_in(queue, row["id"]) > 0.9 * HOUR


def test_a_snooze_is_not_charged(style: Style, work_off: WorkOff, queue: Connection) -> None:
    row = work_off(style(lambda: pgq.snooze(HOUR)))

    assert (row["status"], row["attempts"], row["snoozes"]) == ("pending", 0, 1)
    assert HOUR >= jobs.due_in(queue, row["id"]) > 0.9 * HOUR
    assert jobs.attempts(queue, row["id"]) == []


@pytest.mark.parametrize(
    "body", [raising(pgq.Retry(after=timedelta.max)), lambda: pgq.snooze(timedelta.max)]
)
def test_no_delay_is_so_long_that_the_job_stays_running(
    style: Style, work_off: WorkOff, body: Callable[[], Any]
) -> None:
    row = work_off(style(body))

    assert row["status"] == "pending"
    assert row["scheduled_at"].year > 2100


class Nameless(pgq.Fail):
    """One that does not say why: it leaves out super().__init__()."""

    def __init__(self) -> None:
        pass


@pytest.mark.parametrize(
    ("signal", "error"),
    [
        (pgq.Fail(ValueError("not text")), "not text"),  # type: ignore[arg-type]
        (pgq.Fail(""), "Fail"),
        (Nameless(), "Nameless"),
    ],
)
def test_a_signal_without_a_proper_reason_still_ends_the_job(
    style: Style, work_off: WorkOff, signal: pgq.Fail, error: str
) -> None:
    row = work_off(style(raising(signal)))

    assert (row["status"], row["last_error"]) == ("failed", error)


class Silent(Exception):
    """Cannot even be shown."""

    def __str__(self) -> str:
        raise SystemExit("not even this")


def sink(depth: int = 0) -> int:
    return sink(depth + 1) + 1


HOSTILE: dict[str, tuple[Callable[[], Any], str]] = {
    "system exit": (raising(SystemExit(3)), "SystemExit: 3"),
    "interrupt": (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
    "cancelled": (raising(asyncio.CancelledError("mine")), "CancelledError: mine"),
    "generator exit": (raising(GeneratorExit()), "GeneratorExit"),
    "unreadable": (raising(Silent()), "Silent: (its text cannot be read)"),
    "nul": (raising(ValueError("a\0b")), "ValueError: a\\x00b"),
    "surrogate": (raising(ValueError("a\ud800b")), "ValueError: a\\ud800b"),
    "long": (raising(ValueError("x" * 100_000)), "ValueError: xxx"),
    "deep": (sink, "RecursionError: maximum recursion depth exceeded"),
    "group": (
        raising(BaseExceptionGroup("two", [ValueError("one"), SystemExit("other")])),
        "BaseExceptionGroup: two (2 sub-exceptions)",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_exception_harms_more_than_its_own_job(
    style: Style, shared: str, queue: Connection, name: str
) -> None:
    body, error = HOSTILE[name]
    app = pgq.App()
    app.job("hostile")(style(body))
    app.job("good")(style(lambda: "fine"))
    hostile = jobs.enqueue(queue, "hostile")
    good = jobs.enqueue(queue, "good")

    drain(shared, app, concurrency=1)

    row = jobs.row(queue, hostile)
    assert (row["status"], row["attempts"]) == ("pending", 1)
    assert row["last_error"].startswith(error)
    assert len(row["last_error"]) < 2_100
    assert jobs.row(queue, good)["result"] == "fine"
