"""A job whose time is over is asked to stop; it fails its attempt when it really stops."""

import asyncio
import threading
from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest

import pgq
from tests.support import jobs
from tests.support.jobs import Connection
from tests.support.workers import drain
from tests.worker.conftest import WorkOff

SHORT = timedelta(milliseconds=50)
PATIENCE = 10.0


def test_an_async_handler_is_cancelled(work_off: WorkOff, queue: Connection) -> None:
    cleaned = []

    async def handler() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    row = work_off(handler, timeout=SHORT)

    assert (row["status"], row["attempts"]) == ("pending", 1)
    assert row["last_error"] == "timed out after 0.05s"
    assert cleaned == [True]
    (attempt,) = jobs.attempts(queue, row["id"])
    assert attempt["outcome"] == "timed out"


def test_a_thread_is_told_and_keeps_its_slot_until_it_ends(
    shared: str, queue: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    app = pgq.App()
    order = []

    @app.job("stubborn", timeout=SHORT)
    def stubborn(job: pgq.Job) -> None:
        assert job.cancelled.wait(PATIENCE)
        with psycopg.connect(shared) as conn:
            order.append(f"still {jobs.row(conn, job.id)['status']}")
        raise ValueError("given up")

    @app.job("next")
    def following() -> None:
        order.append("next")

    stuck = jobs.enqueue(queue, "stubborn", timeout=SHORT)
    jobs.enqueue(queue, "next")
    drain(shared, app, concurrency=1)

    assert order == ["still running", "next"]
    assert jobs.row(queue, stuck)["last_error"] == "timed out after 0.05s"
    assert "timed out, but a thread cannot be stopped" in capsys.readouterr().err


def test_a_plain_insert_has_the_timeout_of_its_handler(shared: str, queue: Connection) -> None:
    app = pgq.App()

    @app.job("hang", timeout=SHORT)
    async def hang() -> None:
        await asyncio.Event().wait()

    jobs.fill(queue, 1, "hang")
    drain(shared, app)

    assert jobs.rows(queue, "select last_error from pgq.jobs") == [
        {"last_error": "timed out after 0.05s"}
    ]


@pytest.mark.parametrize("isolation", ["async", "thread"])
def test_work_that_was_done_in_spite_of_the_timeout_is_done(
    work_off: WorkOff, isolation: str
) -> None:
    async def on_the_loop() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "done all the same"

    def in_a_thread(job: pgq.Job) -> str:
        assert job.cancelled.wait(PATIENCE)
        return "done all the same"

    row = work_off(on_the_loop if isolation == "async" else in_a_thread, timeout=SHORT)

    assert (row["status"], row["result"]) == ("done", "done all the same")


@pytest.mark.parametrize("isolation", ["async", "thread"])
def test_a_running_job_that_is_asked_to_cancel_ends_cancelled(
    work_off: WorkOff, queue: Connection, isolation: str
) -> None:
    started = threading.Event()

    def ask() -> None:
        assert started.wait(PATIENCE)
        with psycopg.connect(queue.info.dsn, autocommit=True) as conn:
            conn.execute("select pgq.cancel(array(select id from pgq.jobs))")

    async def on_the_loop() -> None:
        started.set()
        await asyncio.Event().wait()

    def in_a_thread(job: pgq.Job) -> None:
        started.set()
        assert job.cancelled.wait(PATIENCE)
        raise ValueError("given up")

    asker = threading.Thread(target=ask)
    asker.start()
    row = work_off(on_the_loop if isolation == "async" else in_a_thread)
    asker.join()

    assert (row["status"], row["last_error"]) == ("cancelled", "cancelled while it ran")
