"""The end of what a handler logged is kept with its attempt that did not succeed."""

import asyncio
import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import pgq
from pgq.runner.output import TAIL
from tests.support import jobs
from tests.support.jobs import Connection
from tests.support.workers import drain
from tests.worker.conftest import WorkOff

pytestmark = pytest.mark.usefixtures("talkative")
SHOP = logging.getLogger("shop")
PATIENCE = 20.0


@pytest.mark.parametrize("isolation", ["async", "thread"])
def test_what_a_failed_handler_logged_is_kept(
    work_off: WorkOff, queue: Connection, isolation: str
) -> None:
    def say() -> None:
        SHOP.debug("not said")
        SHOP.info("fetching %s", "page 1")
        try:
            raise OSError("no route")
        except OSError:
            SHOP.exception("cannot fetch")
        raise ValueError("given up")

    async def on_the_loop() -> None:
        say()

    row = work_off(on_the_loop if isolation == "async" else say)

    head, failed, *trace = jobs.output(queue, row["id"])
    assert (head, failed) == ("info shop: fetching page 1", "error shop: cannot fetch")
    assert trace[0] == "  Traceback (most recent call last):"
    assert trace[-1] == "  OSError: no route"


def test_tasks_and_threads_that_a_handler_starts_speak_for_its_job(
    work_off: WorkOff, queue: Connection
) -> None:
    async def child() -> None:
        SHOP.warning("in a task")

    async def handler() -> None:
        await asyncio.create_task(child())
        await asyncio.to_thread(SHOP.warning, "in a thread")
        raise ValueError("given up")

    row = work_off(handler)

    assert jobs.output(queue, row["id"]) == ["warning shop: in a task", "warning shop: in a thread"]


def fail(error: Exception) -> None:
    raise error


ENDINGS: dict[str, tuple[Callable[[], Any], bool]] = {
    "failed": (lambda: fail(ValueError("no luck")), True),
    "failed for good": (lambda: fail(pgq.Fail("never")), True),
    "retried": (lambda: fail(pgq.Retry("soon")), True),
    "cancelled": (lambda: fail(pgq.Cancel("pointless")), True),
    "done": (lambda: None, False),
    "snoozed": (lambda: pgq.snooze(timedelta(hours=1)), False),
}


@pytest.mark.parametrize("isolation", ["async", "thread"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_it_is_kept_with_every_attempt_that_did_not_succeed(
    work_off: WorkOff, queue: Connection, ending: str, isolation: str
) -> None:
    end, is_kept = ENDINGS[ending]

    async def on_the_loop() -> Any:
        SHOP.info("said")
        return end()

    def in_a_thread() -> Any:
        SHOP.info("said")
        return end()

    row = work_off(on_the_loop if isolation == "async" else in_a_thread)

    outputs = [attempt["output"] for attempt in jobs.attempts(queue, row["id"])]
    assert [output.partition(" ")[2] for output in outputs] == ["info shop: said"] * is_kept


def test_it_is_kept_with_an_attempt_that_timed_out(work_off: WorkOff, queue: Connection) -> None:
    async def handler() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            SHOP.warning("cleaning up")

    row = work_off(handler, timeout=timedelta(milliseconds=50))

    assert jobs.output(queue, row["id"]) == ["warning shop: cleaning up"]


@pytest.mark.parametrize("isolation", ["async", "thread"])
def test_jobs_do_not_get_what_others_logged(shared: str, queue: Connection, isolation: str) -> None:
    app = pgq.App()

    async def on_the_loop(name: str) -> None:
        SHOP.info("%s begins", name)
        await asyncio.sleep(0.01)
        SHOP.info("%s ends", name)
        raise ValueError(name)

    def in_a_thread(name: str) -> None:
        SHOP.info("%s begins", name)
        SHOP.info("%s ends", name)
        raise ValueError(name)

    app.job("work")(on_the_loop if isolation == "async" else in_a_thread)
    given = {jobs.enqueue(queue, "work", payload={"name": name}): name for name in "abcdefgh"}
    silent = jobs.enqueue(queue, "work", payload={"wrong": "parameter"})
    drain(shared, app, concurrency=3)

    for job_id, name in given.items():
        assert jobs.output(queue, job_id) == [
            f"info shop: {name} begins",
            f"info shop: {name} ends",
        ]
    assert [attempt["output"] for attempt in jobs.attempts(queue, silent)] == [None]


def test_a_task_that_was_left_behind_does_not_speak_for_the_next_job(
    shared: str, queue: Connection
) -> None:
    app = pgq.App()
    go, said = asyncio.Event(), asyncio.Event()
    left: list[asyncio.Task[None]] = []

    async def linger() -> None:
        await go.wait()
        SHOP.warning("left behind")
        said.set()

    @app.job("first")
    async def first() -> None:
        left.append(asyncio.create_task(linger()))

    @app.job("second")
    async def second() -> None:
        SHOP.warning("mine")
        go.set()
        await said.wait()
        raise ValueError("no luck")

    jobs.enqueue(queue, "first")
    job_id = jobs.enqueue(queue, "second")
    drain(shared, app, concurrency=1)

    assert jobs.output(queue, job_id) == ["warning shop: mine"]


def test_only_the_end_is_kept(work_off: WorkOff, queue: Connection) -> None:
    def handler() -> None:
        for number in range(20_000):
            SHOP.info("line %d", number)
        raise ValueError("no luck")

    row = work_off(handler)

    (attempt,) = jobs.attempts(queue, row["id"])
    first, *lines = attempt["output"].split("\n")
    assert first == "..."
    assert lines[-1].endswith(" info shop: line 19999")
    numbers = [int(line.rpartition(" ")[2]) for line in lines]
    assert numbers == list(range(20_000 - len(numbers), 20_000))
    assert TAIL / 2 < len(attempt["output"]) <= TAIL + 4


def test_an_application_that_logs_elsewhere_keeps_its_way_and_its_output(
    work_off: WorkOff, queue: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[str] = []

    class Elsewhere(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    SHOP.addHandler(Elsewhere())
    SHOP.propagate = False

    def handler() -> None:
        SHOP.info("said")
        raise ValueError("no luck")

    row = work_off(handler)

    assert heard == ["said"]
    assert jobs.output(queue, row["id"]) == ["info shop: said"]
    assert "said" not in capsys.readouterr().err


def test_threads_of_a_handler_may_log_at_the_same_time(
    work_off: WorkOff, queue: Connection
) -> None:
    async def handler() -> None:
        together = threading.Barrier(4)

        def say(name: str) -> None:
            together.wait(PATIENCE)
            for _ in range(200):
                SHOP.info("%s", name * 10)

        await asyncio.gather(*(asyncio.to_thread(say, name) for name in "abcd"))
        raise ValueError("no luck")

    row = work_off(handler)

    lines = jobs.output(queue, row["id"])[1:]
    assert {line.removeprefix("info shop: ")[:1] for line in lines} <= set("abcd")
    assert all(line[11:] in [name * 10 for name in "abcd"] for line in lines), lines
