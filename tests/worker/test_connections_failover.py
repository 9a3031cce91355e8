"""The primary is lost and its standby takes over. docs/failover.md says what these tests show."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import pgq
from tests.support import diary, jobs, workers
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.replication import Pair, replicated
from tests.support.workers import Workers

APP = ("--app", "tests.worker.handlers:app")
VERSION = int(os.environ.get("PGQ_TEST_PG", "18"))


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """A primary and a standby; the parameter says whether commits wait for the latter."""
    with replicated(VERSION, synchronous=request.param == "synchronous") as made:
        yield made


@pytest.fixture
def crew(pair: Pair, tmp_path: Path) -> Iterator[Workers]:
    """Starts workers that go where the primary is."""
    with workers.starting(pair.dsn, {"DESK": str(tmp_path)}) as started:
        yield started


@contextmanager
def producing(dsn: str) -> Iterator[list[int]]:
    """Enqueue without a pause while the block runs; gives the ids whose commit was confirmed."""
    confirmed: list[int] = []
    ended = threading.Event()

    def produce() -> None:
        try:
            with psycopg.connect(dsn, autocommit=True) as conn:
                while not ended.is_set():
                    confirmed.append(pgq.enqueue(conn, "note and linger").id)
        except (psycopg.OperationalError, pgq.Unavailable):
            pass  # the primary is lost

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield confirmed
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("pair", ["synchronous"], indirect=True)
def test_no_confirmed_job_is_lost_with_a_synchronous_standby(
    pair: Pair, crew: Workers, tmp_path: Path
) -> None:
    team = [crew.hire(*APP, "-c", "5") for _ in range(2)]
    with psycopg.connect(pair.dsn, autocommit=True) as before, producing(pair.dsn) as confirmed:
        wait_until(before, "select count(*) > 20 from pgq.jobs where status = 'done'")
        pair.fail_over()

    with psycopg.connect(pair.dsn, autocommit=True) as after:
        wait_until(after, "select bool_and(status = 'done') from pgq.jobs")
        stored = {row["id"] for row in jobs.rows(after, "select id from pgq.jobs")}
        assert set(confirmed) <= stored
        assert jobs.rows(after, "select distinct attempts, losses from pgq.jobs") == [
            {"attempts": 1, "losses": 0}
        ]
        assert jobs.counted(after)["done"] == len(stored)
        wait_until(after, "select pgq.session_age() > interval '6 seconds'")
        assert jobs.value(after, "select count(*) from pgq.workers where died_at is not null") == 0
    runs = diary.read(tmp_path / "diary")
    assert len(runs) == len(stored)
    assert diary.overlaps(runs) == []
    for worker in team:
        assert worker.said("worker started") == 1


@pytest.mark.parametrize("pair", ["asynchronous"], indirect=True)
def test_what_a_lagging_standby_did_not_hear_of_is_lost_or_runs_again(
    pair: Pair, crew: Workers, tmp_path: Path
) -> None:
    worker = crew.hire(*APP, "-q", "default")
    with psycopg.connect(pair.dsn, autocommit=True) as before:
        finished_late = jobs.enqueue(before, "keep a diary")
        wait_until(before, "select status = 'running' from pgq.jobs where id = %s", finished_late)
        claimed_late = jobs.enqueue(before, "note and linger", queue="late")
        caught_up(before)
        pair.part()
        (tmp_path / "go").touch()
        wait_until(before, "select status = 'done' from pgq.jobs where id = %s", finished_late)
        enqueued_late = jobs.enqueue(before, "note and linger", queue="late")
        latecomer = crew.hire(*APP, "-q", "late")
        wait_until(before, "select count(*) = 3 from pgq.jobs where status = 'done'")
        pair.fail_over()

    with psycopg.connect(pair.dsn, autocommit=True) as after:
        wait_until(after, "select count(*) = 2 from pgq.jobs where status = 'done'")
        assert jobs.rows(after, "select id from pgq.jobs where id = %s", enqueued_late) == []
        assert jobs.row(after, finished_late)["worker_id"] == worker.id
    runs = [run.job for run in diary.read(tmp_path / "diary")]
    assert runs.count(finished_late) == 2
    assert runs.count(claimed_late) == 2
    assert runs.count(enqueued_late) == 1
    # The row of the worker that registered last was lost too: it goes on under a new one.
    latecomer.seen("worker started", times=2)
    assert worker.said("worker started") == 1


def caught_up(primary: Connection) -> None:
    """Wait until the standby has all that was written so far."""
    wait_until(
        primary,
        "select bool_and(flush_lsn >= pg_current_wal_insert_lsn()) from pg_stat_replication",
    )
