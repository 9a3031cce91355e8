"""Whoever asks a job to stop, just before its end or just after: it has one outcome."""

import asyncio
import threading
from datetime import timedelta

import pytest

import pgq
from pgq.model import Cancelled, Done, HandedBack, Verdict
from pgq.registry.app import Isolation
from pgq.runner.interrupt import Interrupt
from tests.support.databases import PATIENCE
from tests.support.stage import AN_HOUR, Stage, job, passes, settle_down

BOTH = pytest.mark.parametrize("isolation", [Isolation.ASYNC, Isolation.THREAD])
CAUSES = pytest.mark.parametrize(
    "cause", [Interrupt.CANCEL, Interrupt.HAND_BACK, Interrupt.KILL, Interrupt.LOST]
)


@CAUSES
async def test_a_thread_that_ended_before_it_was_asked_is_done(cause: Interrupt) -> None:
    stage = Stage()
    second = threading.Event()

    @stage.app.job("work")
    def work(job: pgq.Job) -> int:
        if job.id == 2:
            second.set()
        return job.id

    stage.open(Isolation.THREAD)
    stage.runner.submit([job(1, timeout=timedelta(seconds=1)), job(2)])
    # The only thread has gone on to the next job; the event loop has not heard of the first end.
    assert second.wait(PATIENCE)
    stage.ask(cause, 1)
    stage.after(3600)

    assert await stage.outcome(1) == Done("1")
    assert await stage.outcome(2) == Done("2")


@CAUSES
async def test_a_task_that_can_go_on_when_it_is_asked_ends_as_asked(cause: Interrupt) -> None:
    stage = Stage()
    go = asyncio.Event()

    @stage.app.job("work")
    async def work() -> str:
        await go.wait()
        return "finished"

    stage.open(Isolation.ASYNC)
    stage.runner.submit([job()])
    await settle_down()
    go.set()
    stage.ask(cause, 1)

    assert isinstance(await stage.outcome(1), Cancelled | HandedBack)


@BOTH
@CAUSES
async def test_asking_for_a_job_that_was_reported_changes_nothing(
    isolation: Isolation, cause: Interrupt
) -> None:
    stage = Stage()

    async def on_the_loop() -> None: ...

    def in_a_thread() -> None: ...

    stage.app.job("work")(on_the_loop if isolation is Isolation.ASYNC else in_a_thread)
    stage.open(isolation)
    stage.runner.submit([job(1)])
    assert await stage.outcome(1) == Done()

    stage.ask(cause, 1)
    stage.runner.ask(cause)
    stage.after(3600)
    stage.runner.submit([job(2)])

    assert await stage.outcome(2) == Done()
    assert await stage.outcome(1) == Done()


@BOTH
@CAUSES
async def test_a_job_that_is_asked_before_it_starts_never_starts(
    isolation: Isolation, cause: Interrupt
) -> None:
    stage = Stage()
    started, go, ran = threading.Event(), threading.Event(), []

    async def on_the_loop(job: pgq.Job) -> None:
        ran.append(job.id)
        started.set()
        await passes(go)

    def in_a_thread(job: pgq.Job) -> None:
        ran.append(job.id)
        started.set()
        assert go.wait(PATIENCE)

    stage.app.job("work")(on_the_loop if isolation is Isolation.ASYNC else in_a_thread)
    stage.open(isolation)
    stage.runner.submit([job(1), job(2), job(3)])
    await passes(started)
    stage.ask(cause, 2)
    go.set()

    assert isinstance(await stage.outcome(2), Cancelled | HandedBack)
    assert await stage.outcome(1) == await stage.outcome(3) == Done()
    assert ran == [1, 3]


@BOTH
async def test_who_asked_first_decides_the_end(isolation: Isolation) -> None:
    for causes, expected in {
        (Interrupt.CANCEL, Interrupt.KILL): "cancelled, then killed by an operator",
        (Interrupt.KILL, Interrupt.CANCEL): "killed by an operator",
        (Interrupt.CANCEL, Interrupt.TIMEOUT): "cancelled while it ran",
        (Interrupt.TIMEOUT, Interrupt.KILL): "timed out after 1h",
        (Interrupt.HAND_BACK, Interrupt.KILL): None,
        (Interrupt.LOST, Interrupt.KILL): None,
    }.items():
        ended = await end_of(isolation, causes)
        said = None if isinstance(ended, HandedBack) else str(ended).partition("'")[2]
        assert (said or "").startswith(expected or ""), (causes, ended)
        assert (said is None) == (expected is None), (causes, ended)


async def end_of(isolation: Isolation, causes: tuple[Interrupt, ...]) -> Verdict:
    """What becomes of a running job that is asked for these reasons, one after the other."""
    stage = Stage()
    started = threading.Event()

    async def on_the_loop() -> None:
        started.set()
        await asyncio.Event().wait()

    def in_a_thread(job: pgq.Job) -> None:
        started.set()
        assert job.cancelled.wait(PATIENCE)
        raise ValueError("given up")

    stage.app.job("work")(on_the_loop if isolation is Isolation.ASYNC else in_a_thread)
    stage.open(isolation)
    stage.runner.submit([job(timeout=AN_HOUR)])
    await passes(started)
    for cause in causes:
        if cause is Interrupt.TIMEOUT:
            stage.after(3700)
        else:
            stage.ask(cause, 1)
    return await stage.outcome(1)


@BOTH
async def test_what_waits_for_a_slot_has_not_started(isolation: Isolation) -> None:
    stage = Stage()
    began, go = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        assert go.wait(PATIENCE)

    async def work_on_the_loop() -> None:
        began.set()
        await asyncio.to_thread(work)

    stage.app.job("work")(work_on_the_loop if isolation is Isolation.ASYNC else work)
    stage.open(isolation)
    stage.runner.submit([job(1), job(2), job(3)])
    await passes(began)

    assert [started.id for started in stage.runner.started()] == [1]
    assert stage.runner.waiting == 2
    assert [waiting.id for waiting in stage.runner.withdraw()] == [2, 3]

    go.set()
    assert await stage.outcome(1) == Done()
    assert stage.runner.started() == []
