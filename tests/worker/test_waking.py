"""How an idle worker hears of new jobs."""

import threading
from collections.abc import Callable
from datetime import timedelta
from signal import SIGTERM

import psycopg
import pytest
from psycopg import sql

import pgq
import pgq.worker.claim
from pgq.notify import channel
from tests.support import jobs, workers
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.workers import Workers

HOUR = timedelta(hours=1)
IDLE = "select count(*) = %s from pgq.workers where waiting"


def while_it_waits(dsn: str, act: Callable[[Connection], None]) -> threading.Thread:
    """Do this on another connection as soon as a worker waits."""

    def once() -> None:
        with psycopg.connect(dsn, autocommit=True) as conn:
            wait_until(conn, IDLE, 1)
            act(conn)

    thread = threading.Thread(target=once)
    thread.start()
    return thread


def test_an_idle_worker_is_woken(
    shared: str, queue: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing but a notification can make it look again.
    monkeypatch.setattr(pgq.worker.claim, "FIRST_LOOK", 3600.0)
    app = pgq.App()

    @app.job("work")
    async def work() -> None:
        workers.tell_self(SIGTERM)

    enqueuing = while_it_waits(shared, lambda conn: jobs.fill(conn, 1))
    code = workers.run(pgq.worker.Options(dsn=shared, app=app, poll=HOUR))
    enqueuing.join()

    assert code == 0
    assert jobs.counted(queue)["done"] == 1


def test_a_job_that_is_committed_late_is_found_without_a_notification(
    shared: str, queue: Connection, fleet: Workers
) -> None:
    with psycopg.connect(shared) as late:
        job_id = jobs.enqueue(late)
        fleet.start("--exec", "true", "--poll", "1h")
        wait_until(queue, IDLE, 1)

    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)


def test_a_job_that_becomes_due_is_found_by_polling(queue: Connection, fleet: Workers) -> None:
    job_id = jobs.enqueue(queue, delay=timedelta(seconds=0.5))
    fleet.start("--exec", "true", "--poll", "0.1s")

    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)
    assert jobs.value(queue, "select bool_and(locked_at >= scheduled_at) from pgq.jobs")


class Ear:
    """Hears what the waiting workers are told."""

    def __init__(self, dsn: str) -> None:
        self._conn = psycopg.connect(dsn, autocommit=True)
        for row in jobs.rows(self._conn, "select id from pgq.workers"):
            name = sql.Identifier(channel(row["id"]))
            self._conn.execute(sql.SQL("listen {}").format(name))

    def heard_until_done(self, job_id: int) -> list[str]:
        """What was said until this job was done."""
        with self._conn:
            wait_until(self._conn, "select status = 'done' from pgq.jobs where id = %s", job_id)
            return [notification.payload for notification in self._conn.notifies(timeout=0)]


def test_one_job_wakes_one_worker(shared: str, queue: Connection, fleet: Workers) -> None:
    for _ in range(3):
        fleet.start("--exec", "true", "--poll", "1h")
    wait_until(queue, IDLE, 3)
    ear = Ear(shared)

    job_id = jobs.enqueue(queue)

    assert ear.heard_until_done(job_id) == ["look"]


def test_a_worker_is_woken_for_what_it_can_run_now(
    shared: str, queue: Connection, fleet: Workers
) -> None:
    fleet.start("--exec", "true", "--kind", "mine", "--poll", "1h")
    wait_until(queue, IDLE, 1)
    ear = Ear(shared)

    jobs.enqueue(queue, "another")
    jobs.enqueue(queue, "mine", queue="elsewhere")
    jobs.enqueue(queue, "mine", delay=HOUR)
    job_id = jobs.enqueue(queue, "mine")

    assert ear.heard_until_done(job_id) == ["look"]
