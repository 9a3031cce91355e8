"""What a handler's return value or exception means."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import pgq
from pgq.model import Buried, Cancelled, ClaimedJob, Done, Failed, HandedBack, Snoozed
from pgq.registry import Handler
from pgq.registry.binding import Misfit
from pgq.runner.interrupt import Interrupt, Stop, clock, deadline, interrupted
from pgq.runner.verdict import MAX_ERROR, MAX_RESULT, describe, raised, returned, trace
from pgq.text import storable

HOUR = timedelta(hours=1)
NOW = datetime(2030, 1, 1, tzinfo=UTC)
JOB = ClaimedJob(1, 2, "q", "work", {}, 0, NOW, attempts=2, max_attempts=3, timeout=HOUR)


def handler(retry: Any = None) -> Handler:
    app = pgq.App()
    app.job("work", retry=retry)(lambda: None)
    return app.handlers["work"]


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (None, Done()),
        ({"a": [1, "ü"]}, Done('{"a": [1, "ü"]}')),
        (False, Done("false")),
        (pgq.snooze(HOUR), Snoozed(HOUR)),
        ("x" * (MAX_RESULT - 2), Done('"' + "x" * (MAX_RESULT - 2) + '"')),
    ],
)
def test_a_return_value_is_the_result_or_a_snooze(value: object, verdict: Done | Snoozed) -> None:
    assert returned(value) == verdict


def test_a_result_that_cannot_be_kept_is_a_note() -> None:
    verdict = returned("x" * MAX_RESULT)

    assert isinstance(verdict, Done)
    assert (verdict.result, verdict.note) == (
        None,
        f"result dropped: {MAX_RESULT + 2} bytes, and at most {MAX_RESULT} are kept",
    )


def test_a_coroutine_that_nobody_awaits_is_no_result() -> None:
    async def work() -> None: ...

    verdict = returned(work())

    assert isinstance(verdict, Buried)
    assert "make the handler an `async def`" in verdict.error


def test_signals_and_misfits_have_verdicts_of_their_own() -> None:
    assert raised(handler(), JOB, pgq.Cancel("gone")) == Cancelled("gone")
    assert raised(handler(), JOB, Misfit("no a")) == Buried("payload does not fit: no a")
    failed = raised(handler(), JOB, pgq.Fail("never"))
    assert isinstance(failed, Buried)
    assert failed.error == "never"


@pytest.mark.parametrize(
    ("retry", "error", "delay"),
    [
        (None, ValueError("x"), None),
        (HOUR, ValueError("x"), HOUR),
        ([HOUR, 2 * HOUR, 3 * HOUR], ValueError("x"), 2 * HOUR),
        ([HOUR], ValueError("x"), HOUR),
        (lambda attempt: attempt * HOUR, ValueError("x"), 2 * HOUR),
        (lambda _: None, ValueError("x"), None),
        (HOUR, pgq.Retry("x", after=2 * HOUR), 2 * HOUR),
        (HOUR, pgq.Retry("x"), HOUR),
        (None, pgq.Retry("x"), None),
    ],
)
def test_the_wait_is_what_the_exception_or_the_policy_says(
    retry: Any, error: Exception, delay: timedelta | None
) -> None:
    verdict = raised(handler(retry), JOB, error)

    assert isinstance(verdict, Failed)
    assert verdict.delay == delay


@pytest.mark.parametrize("retry", [lambda _: 5, lambda _: 1 / 0, lambda _: exit(1)])
def test_a_policy_that_fails_is_named_and_the_default_applies(retry: Any) -> None:
    verdict = raised(handler(retry), JOB, ValueError("x"))

    assert isinstance(verdict, Failed)
    assert verdict.delay is None
    assert verdict.error.startswith("ValueError: x (and its retry policy failed: ")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


def test_an_exception_is_described_whatever_it_is() -> None:
    assert describe(ValueError("x")) == "ValueError: x"
    assert describe(ValueError()) == "ValueError"
    assert describe(Unspeakable()) == "Unspeakable: (its text cannot be read)"
    assert "Unspeakable" in trace(Unspeakable())


def test_text_is_made_fit_for_the_database_and_cut_in_the_middle() -> None:
    assert storable("a\0b\ud800c", 100) == "a\\x00b\\ud800c"
    cut = storable("a" * 5_000 + "b" * 5_000, MAX_ERROR)
    assert cut == "a" * 1_000 + " ... 8000 characters cut ... " + "b" * 1_000


def asked(*causes: Interrupt) -> Stop:
    stop = Stop()
    for cause in causes:
        stop.ask(cause, 0.0)
    return stop


def test_a_job_that_was_asked_to_stop_ends_as_what_was_asked() -> None:
    assert interrupted(JOB, asked(Interrupt.TIMEOUT)) == Failed(
        "timed out after 1h", timed_out=True
    )
    assert interrupted(JOB, asked(Interrupt.CANCEL)) == Cancelled("cancelled while it ran")
    assert interrupted(JOB, asked(Interrupt.HAND_BACK)) == HandedBack()
    assert interrupted(JOB, asked(Interrupt.KILL)) == Cancelled("killed by an operator")


def test_the_first_wish_decides_the_end_and_the_strongest_how_far_to_go() -> None:
    stop = asked(Interrupt.HAND_BACK, Interrupt.TIMEOUT, Interrupt.CANCEL)

    assert stop.cause is Interrupt.TIMEOUT
    assert interrupted(JOB, stop) == HandedBack()
    assert interrupted(JOB, asked(Interrupt.CANCEL, Interrupt.KILL)) == Cancelled(
        "cancelled, then killed by an operator"
    )


def test_a_deadline_is_the_timeout_from_now() -> None:
    assert deadline(JOB, 10.0) == 3610.0
    assert deadline(JOB._replace(timeout=None), 10.0) is None
    assert clock() <= clock()
