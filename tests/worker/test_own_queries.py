"""The connections that a handler makes by its job are found by their name, and ended with it."""

import asyncio
import threading
from datetime import timedelta

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import pgq
from pgq import db
from pgq.calls import jobs as calls
from pgq.errors import UsageError
from tests.support import jobs
from tests.support.jobs import Connection
from tests.support.stage import job
from tests.support.workers import drain
from tests.worker.conftest import WorkOff

SHORT = timedelta(milliseconds=50)
PATIENCE = 30.0
ACTIVE = (
    "select count(*) from pg_catalog.pg_stat_activity"
    " where starts_with(application_name, 'pgq-job-') and state = 'active'"
)


def test_a_thread_that_waits_in_its_own_query_ends_as_it_was_asked(
    work_off: WorkOff, queue: Connection
) -> None:
    def handler(job: pgq.Job) -> None:
        with job.connect() as conn:
            conn.execute("select pg_catalog.pg_sleep(600)")

    row = work_off(handler, timeout=SHORT)

    assert row["last_error"] == "timed out after 0.05s (ended by cancelling its queries)"
    (attempt,) = jobs.attempts(queue, row["id"])
    assert attempt["outcome"] == "timed out"
    assert "QueryCanceled" in attempt["traceback"]
    assert jobs.value(queue, ACTIVE) == 0


def test_an_async_handler_that_waits_in_its_own_query_is_cancelled_with_it(
    work_off: WorkOff, queue: Connection
) -> None:
    async def handler(job: pgq.Job) -> None:
        async with await job.connect_async() as conn:
            await conn.execute("select pg_catalog.pg_sleep(600)")

    row = work_off(handler, timeout=SHORT)

    assert row["last_error"] == "timed out after 0.05s (ended by cancellation)"
    assert jobs.value(queue, ACTIVE) == 0


def test_only_the_queries_of_that_attempt_are_cancelled(shared: str, queue: Connection) -> None:
    mine, other = job(1), job(2)
    names: list[str] = []
    waiting = threading.Barrier(3)

    def sleep(name: str) -> None:
        with psycopg.connect(shared, application_name=name, autocommit=True) as conn:
            waiting.wait(PATIENCE)
            try:
                conn.execute("select pg_catalog.pg_sleep(600)")
            except psycopg.errors.QueryCanceled:
                names.append(name)

    threads = [
        threading.Thread(target=sleep, args=[each.application_name]) for each in (mine, other)
    ]
    for thread in threads:
        thread.start()
    waiting.wait(PATIENCE)
    try:
        while not db.run(queue, calls.cancel_queries(mine)):
            pass
        threads[0].join(PATIENCE)
        assert names == [mine.application_name]
    finally:
        while not db.run(queue, calls.cancel_queries(other)):
            pass
        threads[1].join(PATIENCE)
    assert db.run(queue, calls.cancel_queries(mine)) == 0


@pytest.mark.parametrize("isolation", ["async", "thread"])
def test_a_connection_bears_the_name_of_the_attempt_whatever_else_names_it(
    shared: str, queue: Connection, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    monkeypatch.setenv("PGAPPNAME", "from the environment")
    app = pgq.App()
    show = "select pg_catalog.current_setting('application_name')"

    async def on_the_loop(job: pgq.Job) -> object:
        async with await job.connect_async() as conn:
            return [conn.autocommit, await (await conn.execute(show)).fetchone()]

    def in_a_thread(job: pgq.Job) -> object:
        with job.connect() as conn:
            return [conn.autocommit, conn.execute(show).fetchone()]

    app.job("work")(on_the_loop if isolation == "async" else in_a_thread)
    job_id = jobs.enqueue(queue, "work")
    drain(make_conninfo(shared, application_name="from the DSN"), app)

    autocommit, (name,) = jobs.row(queue, job_id)["result"]
    assert autocommit is True
    assert name.startswith(f"pgq-job-{job_id}-")


async def test_a_job_that_no_worker_runs_has_no_connection() -> None:
    plain = job()
    alone = pgq.Job(
        plain.id, plain.queue, plain.kind, {}, 0, plain.scheduled_at, 1, 3, None, threading.Event()
    )

    with pytest.raises(UsageError, match="job 1 runs under no worker: connect by yourself"):
        alone.connect()
    with pytest.raises(UsageError, match="job 1 runs under no worker"):
        await asyncio.wait_for(alone.connect_async(), PATIENCE)
