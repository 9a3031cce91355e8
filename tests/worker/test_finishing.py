"""Outcomes and claims are written once, also when the reply of the database is lost."""

import asyncio
from datetime import timedelta
from signal import SIGHUP, SIGTERM

import psycopg
import pytest

import pgq
from pgq.worker import Options
from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.proxy import Proxy
from tests.support.workers import Workers, drain, run, tell_self


def test_a_lone_outcome_is_written_at_once(shared: str, queue: Connection) -> None:
    app = pgq.App()

    @app.job("lone")
    async def lone() -> None: ...

    @app.job("watch")
    def watch(lone: int) -> None:
        with psycopg.connect(shared, autocommit=True) as conn:
            wait_until(conn, "select status = 'done' from pgq.jobs where id = %s", lone)

    first = jobs.enqueue(queue, "lone")
    watcher = jobs.enqueue(queue, "watch", payload={"lone": first})
    drain(shared, app)

    assert jobs.row(queue, watcher)["status"] == "done"


def test_a_finish_whose_reply_was_lost_is_sent_again_and_counted_once(
    proxy: Proxy, queue: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    app = pgq.App()
    runs = []

    @app.job("work")
    async def work() -> None:
        runs.append(1)

    job_id = jobs.enqueue(queue, "work")
    proxy.lose_reply("pgq worker finish")
    drain(proxy.dsn, app)

    assert proxy.lost.is_set()
    assert (runs, jobs.row(queue, job_id)["status"]) == ([1], "done")
    assert jobs.counted(queue) == {"done": 1, "failed": 0, "retried": 0}
    log = capsys.readouterr().err
    assert log.count("database lost loop=finish") == log.count("database back loop=finish") == 1
    assert "done=1 attempts_not_done=0 leases_lost=0" in log


@pytest.mark.parametrize(
    ("outcome", "row", "recorded", "counted"),
    [
        (ValueError("no luck"), ("pending", 1, 0), 1, {"retried": 1}),
        (pgq.Fail("for good"), ("failed", 1, 0), 1, {"failed": 1}),
        (pgq.snooze(timedelta(hours=1)), ("pending", 0, 1), 0, {}),
        (pgq.Cancel("not needed"), ("cancelled", 1, 0), 1, {}),
    ],
    ids=["failed", "failed for good", "snoozed", "cancelled"],
)
def test_another_outcome_whose_reply_was_lost_is_sent_again_and_counted_once(
    proxy: Proxy,
    queue: Connection,
    capsys: pytest.CaptureFixture[str],
    outcome: object,
    row: tuple[str, int, int],
    recorded: int,
    counted: dict[str, int],
) -> None:
    app = pgq.App()

    @app.job("work")
    async def work() -> object:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    job_id = jobs.enqueue(queue, "work")
    proxy.lose_reply("pgq worker finish")
    drain(proxy.dsn, app)

    assert proxy.lost.is_set()
    written = jobs.row(queue, job_id)
    assert (written["status"], written["attempts"], written["snoozes"]) == row
    assert len(jobs.attempts(queue, job_id)) == recorded
    assert jobs.counted(queue) == {"done": 0, "failed": 0, "retried": 0, **counted}
    assert "done=0 attempts_not_done=1 leases_lost=0" in capsys.readouterr().err


def test_a_job_handed_back_whose_reply_was_lost_is_pending_and_not_charged(
    proxy: Proxy, queue: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    app = pgq.App()

    @app.job("work")
    async def work() -> None:
        proxy.lose_reply("pgq worker finish")
        tell_self(SIGTERM, SIGHUP)
        await asyncio.Event().wait()

    job_id = jobs.enqueue(queue, "work")
    assert run(Options(dsn=proxy.dsn, app=app)) == 128 + SIGHUP

    assert proxy.lost.is_set()
    row = jobs.row(queue, job_id)
    assert (row["status"], row["attempts"], row["lease"]) == ("pending", 0, None)
    assert jobs.attempts(queue, job_id) == []
    assert "done=0 attempts_not_done=1 leases_lost=0" in capsys.readouterr().err


@pytest.mark.parametrize("answered", [True, False])
def test_a_claim_whose_reply_was_lost_is_given_back_and_runs(
    proxy: Proxy, queue: Connection, answered: bool
) -> None:
    app = pgq.App()
    runs = []

    @app.job("work")
    async def work(job: pgq.Job) -> None:
        runs.append(job.attempt)

    job_id = jobs.enqueue(queue, "work")
    proxy.lose_reply("pgq worker claim", answered=answered)
    drain(proxy.dsn, app)

    assert proxy.lost.is_set()
    row = jobs.row(queue, job_id)
    assert (runs, row["status"], row["attempts"]) == ([1], "done", 1)
    assert jobs.attempts(queue, job_id) == []


def test_a_claim_that_is_still_under_way_when_its_connection_breaks_is_not_forgotten(
    proxy: Proxy, shared: str, queue: Connection, fleet: Workers
) -> None:
    job_id = jobs.enqueue(queue, "work")
    with psycopg.connect(shared) as blocker:
        blocker.execute("lock table pgq.jobs in exclusive mode")
        proxy.lose_reply("pgq worker claim", answered=False)
        worker = fleet.start("--exec", "true", dsn=proxy.dsn)
        worker.seen("database lost", loop="claim")
        # The session that was given up is ended by the next one, which then waits in its place.
        wait_until(
            queue,
            "select count(*) = 1 from pg_stat_activity"
            " where application_name = 'pgq worker claim' and wait_event_type = 'Lock'",
        )

    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)
    assert jobs.attempts(queue, job_id) == []
