"""Connections that break and servers that restart: the worker says so once, and goes on."""

import asyncio
from contextlib import closing
from pathlib import Path
from signal import SIGHUP, SIGTERM
from typing import Literal

import psycopg
import pytest

import pgq
import pgq.worker.closing
from tests.support import diary, jobs, workers
from tests.support.cluster import Cluster
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.workers import Workers

APP = ("--app", "tests.worker.handlers:app")
LOOPS = ("claim", "finish", "heartbeat")


def terminate(queue: Connection, loop: str) -> None:
    """End the server process that serves this loop of the worker."""
    queue.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and application_name = %s",
        (f"pgq worker {loop}",),
    )


def test_each_terminated_backend_is_replaced_and_spoken_of_once(
    queue: Connection, fleet: Workers
) -> None:
    worker = fleet.start("--exec", "true")
    for loop in ("none yet", *LOOPS):
        done = jobs.counted(queue)["done"]
        terminate(queue, loop)
        jobs.enqueue(queue)
        wait_until(queue, "select sum(done) > %s from pgq.throughput", done)
        if loop == "heartbeat":
            worker.seen("database back", loop=loop)
    beat = jobs.value(queue, "select beat_at from pgq.workers")
    wait_until(queue, "select beat_at > %s and died_at is null from pgq.workers", beat)

    assert {worker.said("database lost", loop=loop) for loop in LOOPS} == {1}
    assert {worker.said("database back", loop=loop) for loop in LOOPS} == {1}
    assert jobs.value(queue, "select bool_and(attempts = 1) from pgq.jobs")


def test_an_outcome_that_was_being_written_when_all_backends_ended_counts_once(
    shared: str, queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    worker = fleet.hire(*APP)
    job_id = jobs.enqueue(queue, "keep a diary")
    wait_until(queue, "select status = 'running' from pgq.jobs where id = %s", job_id)
    with psycopg.connect(shared) as slow:
        slow.execute("select from pgq.jobs where id = %s for update", (job_id,))
        (tmp_path / "go").touch()
        wait_until(
            queue,
            "select bool_or(cardinality(pg_blocking_pids(pid)) > 0) from pg_stat_activity"
            " where datname = current_database() and application_name = 'pgq worker finish'",
        )
        for loop in LOOPS:
            terminate(queue, loop)
        worker.seen("database lost", loop="finish")

    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)
    assert jobs.counted(queue) == {"done": 1, "failed": 0, "retried": 0}
    assert jobs.row(queue, job_id)["attempts"] == 1
    assert len(diary.read(tmp_path / "diary")) == 1


def test_a_worker_that_lost_its_channel_hears_again(queue: Connection, fleet: Workers) -> None:
    worker = fleet.start("--app", "tests.worker.told:app", "--poll", "1h")
    wait_until(queue, "select bool_or(waiting) from pgq.workers")
    terminate(queue, "heartbeat")
    worker.seen("database back", loop="heartbeat")
    for _ in range(2):  # the first may be found by the look that follows; of the second it hears
        job_id = jobs.enqueue(queue, "quick")
        wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_in_the_middle_loses_nothing(
    own: Cluster, home: str, hired: Workers, mode: Literal["fast", "immediate"]
) -> None:
    with closing(psycopg.connect(home, autocommit=True)) as before:
        crew = [hired.hire(*APP, "-c", "5") for _ in range(2)]
        jobs.fill(before, 200, "linger")
        wait_until(before, "select count(*) > 20 from pgq.jobs where status = 'done'")
    own.restart(mode)

    with psycopg.connect(home, autocommit=True) as after:
        wait_until(after, "select bool_and(status = 'done') from pgq.jobs")
        assert jobs.rows(after, "select distinct attempts, losses from pgq.jobs") == [
            {"attempts": 1, "losses": 0}
        ]
        assert jobs.value(after, "select count(*) from pgq.workers where died_at is not null") == 0
        for worker in crew:
            for loop in LOOPS:
                assert worker.said("database lost", loop=loop) <= 1
            worker.send(SIGTERM)
            assert worker.ended() == 0


def test_a_worker_without_a_database_can_be_stopped(
    own: Cluster, home: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pgq.worker.closing, "FAREWELL", 0.2)
    app = pgq.App()

    @app.job("last")
    async def last() -> None:
        await asyncio.to_thread(own.stop, "immediate")
        workers.tell_self(SIGTERM, SIGHUP)
        await asyncio.Event().wait()

    with closing(psycopg.connect(home, autocommit=True)) as before:
        job_id = jobs.enqueue(before, "last")
    code = workers.run(pgq.worker.Options(dsn=home, app=app))

    assert code > 128
    assert "outcomes not written; these jobs run again jobs=1" in capsys.readouterr().err
    own.start()
    with psycopg.connect(home, autocommit=True) as after:
        assert jobs.row(after, job_id)["status"] == "running"
