"""What a worker claims, in which order, and how much of it ahead of what it runs."""

import asyncio
import time
from datetime import timedelta
from typing import LiteralString

import psycopg
import pytest

import pgq
from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.workers import drain

RUNNING: LiteralString = "select count(*) from pgq.jobs where status = 'running'"
HOUR = timedelta(hours=1)


class Diary:
    """An app whose kinds write down in which order their jobs run."""

    def __init__(self, *kinds: str) -> None:
        self.app = pgq.App()
        self.ran: list[str] = []
        for kind in kinds:
            self.app.job(kind)(self._note)

    async def _note(self, job: pgq.Job) -> None:
        self.ran.append(f"{job.queue} {job.kind} {job.priority}")


def test_higher_priorities_go_first(shared: str, queue: Connection) -> None:
    diary = Diary("work")
    for priority in (0, 5, -5, 10, 5):
        jobs.enqueue(queue, "work", priority=priority)

    drain(shared, diary.app, concurrency=1)

    assert diary.ran == [f"default work {priority}" for priority in (10, 5, 5, 0, -5)]


def test_queues_are_looked_into_in_the_order_given(shared: str, queue: Connection) -> None:
    diary = Diary("work")
    for name in ("a", "b", "c"):
        jobs.enqueue(queue, "work", queue=name)

    drain(shared, diary.app, queues=["b", "a"], concurrency=1)

    assert diary.ran == ["b work 0", "a work 0"]


def test_a_long_queue_does_not_starve_another(shared: str, queue: Connection) -> None:
    app = pgq.App()
    ran: list[str] = []

    @app.job("work")
    async def work(job: pgq.Job) -> None:
        ran.append(job.queue)
        if "short" not in ran:
            await asyncio.sleep(0.02)

    queue.execute(
        "insert into pgq.jobs (kind, queue) select 'work', 'long' from generate_series(1, 400)"
    )
    jobs.enqueue(queue, "work", queue="short")
    drain(shared, app, queues=["long", "short"], concurrency=1)

    assert ran.index("short") < 300
    assert len(ran) == 401


def test_an_apps_queues_are_served_and_default(shared: str, queue: Connection) -> None:
    app = pgq.App()
    ran: list[str] = []

    @app.job("mail", queue="letters")
    async def mail(job: pgq.Job) -> None:
        ran.append(job.queue)

    for name in ("letters", "default", "elsewhere"):
        jobs.enqueue(queue, "mail", queue=name)
    drain(shared, app)

    assert sorted(ran) == ["default", "letters"]


def test_a_kind_that_nobody_serves_is_left_alone(shared: str, queue: Connection) -> None:
    diary = Diary("work", "other")
    unknown = jobs.enqueue(queue, "unknown", priority=10)
    unwanted = jobs.enqueue(queue, "other", priority=10)
    jobs.enqueue(queue, "work")

    drain(shared, diary.app, kinds=["work"])

    assert diary.ran == ["default work 0"]
    for job_id in (unknown, unwanted):
        row = jobs.row(queue, job_id)
        assert (row["status"], row["attempts"]) == ("pending", 0)


def test_a_job_that_is_due_later_is_left_alone(shared: str, queue: Connection) -> None:
    diary = Diary("work")
    later = jobs.enqueue(queue, "work", delay=HOUR)

    drain(shared, diary.app)

    assert jobs.row(queue, later)["attempts"] == 0


def test_kinds_are_declared_for_those_who_enqueue(shared: str, queue: Connection) -> None:
    app = pgq.App()

    @app.job("mail", queue="letters", max_attempts=7, timeout=HOUR)
    async def mail() -> None: ...

    drain(shared, app)
    row = jobs.row(queue, jobs.enqueue(queue, "mail"))

    assert (row["queue"], row["max_attempts"], row["timeout"]) == ("letters", 7, HOUR)


def test_jobs_are_claimed_and_finished_in_batches(shared: str, queue: Connection) -> None:
    diary = Diary("work")
    jobs.fill(queue, 2_000)

    drain(shared, diary.app)

    (counts,) = jobs.rows(
        queue,
        "select count(distinct locked_at) as claims, count(distinct finished_at) as finishes"
        " from pgq.jobs where status = 'done'",
    )
    assert len(diary.ran) == 2_000
    assert counts["claims"] < 200
    assert counts["finishes"] < 500


@pytest.mark.parametrize("isolation", ["async", "thread"])
def test_nothing_is_claimed_ahead_of_slow_handlers(
    shared: str, queue: Connection, isolation: str
) -> None:
    app = pgq.App()
    ended: set[int] = set()
    ahead: list[int] = []

    def look(job: pgq.Job) -> None:
        with psycopg.connect(shared, autocommit=True) as conn:
            rows = jobs.rows(conn, "select id from pgq.jobs where status = 'running'")
        ahead.append(len({row["id"] for row in rows} - ended - {job.id}))
        ended.add(job.id)

    async def on_the_loop(job: pgq.Job) -> None:
        await asyncio.sleep(0.15)
        await asyncio.to_thread(look, job)

    def in_a_thread(job: pgq.Job) -> None:
        time.sleep(0.15)
        look(job)

    app.job("work")(on_the_loop if isolation == "async" else in_a_thread)
    jobs.fill(queue, 5)
    drain(shared, app, concurrency=1)

    assert ahead == [0] * 5


def test_what_was_claimed_ahead_and_cannot_start_is_handed_back(
    shared: str, queue: Connection
) -> None:
    app = pgq.App()
    given_back: list[object] = []

    @app.job("quick")
    def quick() -> None: ...

    @app.job("stuck")
    def stick() -> None:
        with psycopg.connect(shared, autocommit=True) as conn:
            wait_until(conn, f"select ({RUNNING}) > 1")
            wait_until(conn, f"select ({RUNNING}) = 1")
            given_back.extend(
                jobs.rows(
                    conn, "select distinct status, attempts from pgq.jobs where lease is null"
                )
            )

    jobs.fill(queue, 300, "quick")
    jobs.enqueue(queue, "stuck")
    jobs.fill(queue, 300, "quick")
    drain(shared, app, concurrency=1)

    assert {"status": "pending", "attempts": 0} in given_back
    assert jobs.counted(queue) == {"done": 601, "failed": 0, "retried": 0}
    assert jobs.value(queue, "select max(attempts) from pgq.jobs") == 1
