"""A handler is made to end rung by rung; what it says for itself counts.

The runners are driven without a worker: time passes when a test says so.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import pgq
from pgq.model import Cancelled, Done, Failed, HandedBack, Snoozed, Verdict
from pgq.registry.app import Isolation
from pgq.runner.executor import Executor
from pgq.runner.interrupt import Interrupt
from tests.support.databases import PATIENCE
from tests.support.stage import AN_HOUR, Stage, job, passes, settle_down

BOTH = pytest.mark.parametrize("isolation", [Isolation.ASYNC, Isolation.THREAD])


@dataclass
class Stubborn:
    """An async handler that goes on after each cancellation."""

    caught: int = 0
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> None:
        while not self.enough.is_set():
            try:
                await self.enough.wait()
            except asyncio.CancelledError:
                self.caught += 1
                if self.caught > 10:  # not beyond the end of its test
                    raise
        raise ValueError("given up")


async def stubborn_stage() -> tuple[Stage, Stubborn]:
    stage, handler = Stage(), Stubborn()
    stage.app.job("work")(handler)
    stage.open(Isolation.ASYNC)
    stage.runner.submit([job(timeout=AN_HOUR), job(2)])
    await settle_down()
    return stage, handler


async def test_an_async_handler_that_goes_on_is_cancelled_again_and_then_named() -> None:
    stage, handler = await stubborn_stage()
    late = AN_HOUR.total_seconds() + 1

    for seconds, caught, queries, complaints in [
        (-2, 0, 0, 0), (0, 1, 0, 0), (4.9, 1, 0, 0), (5, 2, 1, 0), (9.9, 2, 1, 0), (10, 2, 1, 1),
        (1000, 2, 1, 1),
    ]:  # fmt: skip
        stage.after(late + seconds)
        await settle_down()
        seen = (handler.caught, len(stage.queries), len(stage.complaints))
        assert seen == (caught, queries, complaints), f"after {seconds} s"

    assert "does not stop" in stage.complaints[0]
    assert (stage.runner.running, stage.runner.waiting) == (1, 1)
    handler.enough.set()
    verdict = await stage.outcome(1)
    assert isinstance(verdict, Failed)
    assert (verdict.error, verdict.timed_out) == (
        "timed out after 1h (ended by cancellation)",
        True,
    )
    assert "given up" in (verdict.traceback or "")
    await stage.outcome(2)


async def test_a_mere_request_is_made_once_and_may_be_refused() -> None:
    stage, handler = await stubborn_stage()

    stage.ask(Interrupt.CANCEL, 1)
    for seconds in (6, 12, 1000):
        stage.after(seconds)
        await settle_down()

    assert (handler.caught, stage.queries, stage.complaints) == (1, [], [])
    handler.enough.set()
    assert await stage.outcome(1) == Cancelled("cancelled while it ran")


async def test_a_stronger_wish_begins_at_the_first_rung() -> None:
    stage, handler = await stubborn_stage()

    stage.ask(Interrupt.CANCEL, 1)
    await settle_down()
    stage.ask(Interrupt.KILL, 1)
    await settle_down()
    assert handler.caught == 2
    stage.ask(Interrupt.KILL, 1)
    stage.ask(Interrupt.CANCEL, 1)
    await settle_down()
    assert handler.caught == 2
    stage.after(6)
    await settle_down()

    assert (handler.caught, stage.queries) == (3, [1])
    handler.enough.set()
    verdict = await stage.outcome(1)
    assert verdict == Cancelled("cancelled, then killed by an operator (ended by cancellation)")


async def test_a_job_that_others_run_is_pressed_ten_times_as_fast() -> None:
    stage, handler = await stubborn_stage()

    stage.ask(Interrupt.LOST, 1)
    await settle_down()
    stage.after(0.6)
    await settle_down()

    assert (handler.caught, stage.queries) == (2, [1])
    stage.after(1.1)
    assert len(stage.complaints) == 1
    handler.enough.set()
    assert await stage.outcome(1) == HandedBack()


async def test_a_thread_is_told_then_its_queries_end_then_it_is_named() -> None:
    stage = Stage()
    told, enough = threading.Event(), threading.Event()

    @stage.app.job("work")
    def work(job: pgq.Job) -> None:
        assert job.cancelled.wait(PATIENCE)
        told.set()
        assert enough.wait(PATIENCE)
        raise ValueError("given up")

    @stage.app.job("other")
    def other() -> None: ...

    stage.open(Isolation.THREAD, capacity=2)
    stage.runner.submit([job(timeout=AN_HOUR), job(2, "other")])
    await stage.outcome(2)
    late = AN_HOUR.total_seconds() + 1
    stage.after(late)
    await passes(told)
    for seconds, queries, complaints in [(4.9, 0, 0), (5, 1, 0), (9, 1, 0), (10, 1, 1), (99, 1, 1)]:
        stage.after(late + seconds)
        assert (len(stage.queries), len(stage.complaints)) == (queries, complaints), seconds

    assert "a thread cannot be stopped" in stage.complaints[0]
    assert stage.runner.running == 1
    stage.runner.submit([job(3, "other"), job(4, "other")])
    assert await stage.outcome(3) == await stage.outcome(4) == Done()
    enough.set()
    verdict = await stage.outcome(1)
    assert isinstance(verdict, Failed)
    assert verdict.error == "timed out after 1h (ended by cancelling its queries)"
    assert "given up" in (verdict.traceback or "")


@BOTH
@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (lambda: "finished", Done('"finished"')),
        (lambda: pgq.snooze(AN_HOUR), Snoozed(AN_HOUR)),
    ],
)
async def test_what_a_handler_returns_counts_whatever_was_asked(
    isolation: Isolation, word: Callable[[], Any], expected: Verdict
) -> None:
    stage = await asked_to_stop(isolation, word)

    assert await stage.outcome(1) == expected


def fail(error: Exception) -> None:
    raise error


@BOTH
@pytest.mark.parametrize(
    "error",
    [OSError("connection closed by cleanup"), pgq.Cancel("asked to"), pgq.Retry(), pgq.Fail("no")],
)
async def test_whatever_a_handler_raises_then_is_how_it_gave_up(
    isolation: Isolation, error: Exception
) -> None:
    stage = await asked_to_stop(isolation, lambda: fail(error))

    assert await stage.outcome(1) == HandedBack()


async def asked_to_stop(isolation: Isolation, word: Callable[[], Any]) -> Stage:
    """A job that was asked to stop, and that says this then."""
    stage = Stage()
    started = threading.Event()

    async def on_the_loop() -> Any:
        try:
            started.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return word()

    def in_a_thread(job: pgq.Job) -> Any:
        started.set()
        assert job.cancelled.wait(PATIENCE)
        return word()

    stage.app.job("work")(on_the_loop if isolation is Isolation.ASYNC else in_a_thread)
    stage.open(isolation)
    stage.runner.submit([job()])
    await passes(started)
    stage.runner.ask(Interrupt.HAND_BACK)
    return stage


def in_threads_of_the_loop() -> tuple[Stage, threading.Event]:
    """A stage for async handlers that wait in a thread of the event loop, until this is set."""
    stage, gate = Stage(), threading.Event()

    @stage.app.job("work")
    async def work() -> None:
        await asyncio.to_thread(gate.wait)

    return stage, gate


async def test_a_coroutine_has_not_stopped_while_a_thread_works_for_it() -> None:
    asyncio.get_running_loop().set_default_executor(Executor())
    stage, gate = in_threads_of_the_loop()
    stage.open(Isolation.ASYNC)
    stage.runner.submit([job()])
    await settle_down()
    stage.ask(Interrupt.KILL, 1)
    await settle_down()
    still = [one.id for one in stage.runner.started()]
    gate.set()

    assert isinstance(await stage.outcome(1), Cancelled)
    assert still == [1]


async def test_handlers_whose_threads_never_end_leave_the_worker_its_own() -> None:
    asyncio.get_running_loop().set_default_executor(Executor())
    stage, gate = in_threads_of_the_loop()
    most = 32  # threads that an event loop has by default
    stage.open(Isolation.ASYNC, most)
    stage.runner.submit([job(number) for number in range(most)])
    await settle_down()
    try:
        async with asyncio.timeout(PATIENCE):
            assert await asyncio.to_thread(gate.is_set) is False
    finally:
        gate.set()
