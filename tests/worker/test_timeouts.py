"""A job whose time is over is asked to stop; it fails its attempt when it really stops."""

import asyncio
import threading
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

import pgq
from tests.support import jobs
from tests.support.jobs import Connection
from tests.support.workers import Workers, appears, drain
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
    assert row["last_error"] == "timed out after 0.05s (ended by cancellation)"
    assert cleaned == [True]
    (attempt,) = jobs.attempts(queue, row["id"])
    assert attempt["outcome"] == "timed out"
    assert "await asyncio.Event().wait()" in attempt["traceback"]


def test_a_thread_is_told_and_keeps_its_slot_until_it_ends(shared: str, queue: Connection) -> None:
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
    assert jobs.row(queue, stuck)["last_error"] == "timed out after 0.05s (ended by its flag)"
    (attempt,) = jobs.attempts(queue, stuck)
    assert 'raise ValueError("given up")' in attempt["traceback"]


def test_jobs_run_beside_threads_that_never_end(
    fleet: Workers, queue: Connection, tmp_path: Path
) -> None:
    timeout = timedelta(milliseconds=200)
    stuck = [jobs.enqueue(queue, "never ends", timeout=timeout) for _ in range(3)]
    worker = fleet.start("--app", "tests.worker.handlers:app", "-c", "4")
    for job_id in stuck:
        appears(tmp_path / f"asked-{job_id}")

    for _ in range(5):
        appears(tmp_path / f"ran-{jobs.enqueue(queue, 'quick thread')}")

    for job_id in stuck:
        row = jobs.row(queue, job_id)
        assert (row["status"], row["attempts"], row["worker_id"]) == ("running", 1, worker.id)


def test_a_handler_that_blocks_the_event_loop_ends_as_it_was_asked_after_that(
    work_off: WorkOff,
) -> None:
    async def handler() -> None:
        time.sleep(0.3)  # noqa: ASYNC251 - the fault on purpose
        await asyncio.sleep(PATIENCE)

    row = work_off(handler, timeout=SHORT)

    assert row["last_error"] == "timed out after 0.05s (ended by cancellation)"


@pytest.mark.parametrize("isolation", ["async", "thread"])
def test_the_next_attempt_comes_when_the_handler_wants_it(
    work_off: WorkOff, queue: Connection, isolation: str
) -> None:
    async def on_the_loop() -> None:
        await asyncio.Event().wait()

    def in_a_thread(job: pgq.Job) -> None:
        assert job.cancelled.wait(PATIENCE)
        raise ValueError("given up")

    handler = on_the_loop if isolation == "async" else in_a_thread
    row = work_off(handler, timeout=SHORT, retry=timedelta(hours=7))

    assert timedelta(hours=6) < jobs.due_in(queue, row["id"]) < timedelta(hours=9)


def test_a_plain_insert_has_the_timeout_of_its_handler(shared: str, queue: Connection) -> None:
    app = pgq.App()

    @app.job("hang", timeout=SHORT)
    async def hang() -> None:
        await asyncio.Event().wait()

    jobs.fill(queue, 1, "hang")
    drain(shared, app)

    assert jobs.rows(queue, "select last_error from pgq.jobs") == [
        {"last_error": "timed out after 0.05s (ended by cancellation)"}
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
