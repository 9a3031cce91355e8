"""The server is gone for a while: workers wait for it quietly, and are there when it is back."""

import os
import signal
import time
from pathlib import Path

import psycopg

from tests.support import diary, jobs
from tests.support.cluster import Cluster
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.proxy import Proxy
from tests.support.workers import WorkerProcess, Workers

APP = ("--app", "tests.worker.handlers:app", "--kind", "keep a diary")
TOLD = ("--app", "tests.worker.told:app", "--poll", "1h")
"""What such a worker finds, it was told of, or looked for when its connection was back."""

OUTAGE = float(os.environ.get("PGQ_TEST_OUTAGE", "5"))
"""Seconds; 90 and more shows that nothing grows or gives up."""

QUIET = 0.05
"""Share of a processor that a waiting worker may use; docs/failover.md has what it really uses."""


def declared_dead(conn: Connection) -> int:
    """How many workers were declared dead."""
    count: int = jobs.value(conn, "select count(*) from pgq.workers where died_at is not null")
    return count


def outwait_the_young(conn: Connection) -> None:
    """Wait until workers whose sessions began before this one could declare others dead."""
    wait_until(conn, "select pgq.session_age() > interval '6 seconds'")


def measured_outage(*crew: WorkerProcess) -> list[float]:
    """Let the outage last; gives the share of a processor that each worker used."""
    before = [worker.cpu_seconds for worker in crew]
    time.sleep(OUTAGE)
    return [(worker.cpu_seconds - used) / OUTAGE for worker, used in zip(crew, before, strict=True)]


def test_an_outage_is_waited_out_quietly(
    own: Cluster, home: str, hired: Workers, tmp_path: Path
) -> None:
    idle = hired.hire(*TOLD, "-q", "idle")
    busy = hired.hire(*APP)
    with psycopg.connect(home, autocommit=True) as before:
        kept = jobs.enqueue(before, "keep a diary")
        wait_until(before, "select status = 'running' from pgq.jobs where id = %s", kept)
        wait_until(before, "select bool_and(waiting) from pgq.workers where id = %s", idle.id)

    own.stop("immediate")
    for worker in (idle, busy):
        worker.seen("database lost", loop="heartbeat")
    (tmp_path / "go").touch()
    busy.seen("database lost", loop="finish")
    used = measured_outage(idle, busy)
    own.start()

    with psycopg.connect(home, autocommit=True) as after:
        first = jobs.enqueue(after, "quick", queue="idle")
        wait_until(after, "select status = 'done' from pgq.jobs where id = %s", first)
        second = jobs.enqueue(after, "quick", queue="idle")
        wait_until(after, "select status = 'done' from pgq.jobs where id = %s", second)
        wait_until(after, "select status = 'done' from pgq.jobs where id = %s", kept)
        outwait_the_young(after)
        assert declared_dead(after) == 0
        assert jobs.counted(after)["done"] == 3
    assert len(diary.read(tmp_path / "diary")) == 1
    assert max(used) < QUIET
    for worker in (idle, busy):
        assert worker.said("database lost", loop="heartbeat") == 1
        for loop in ("claim", "finish", "heartbeat"):
            lost = worker.said("database lost", loop=loop)
            assert lost == worker.said("database back", loop=loop) <= 1


def test_what_was_enqueued_while_a_worker_was_cut_off_runs_when_it_is_back(
    proxy: Proxy, queue: Connection, fleet: Workers
) -> None:
    worker = fleet.hire(*TOLD, dsn=proxy.dsn)
    wait_until(queue, "select bool_or(waiting) from pgq.workers")

    proxy.refuse()
    worker.seen("database lost", loop="heartbeat")
    meanwhile = jobs.enqueue(queue, "quick")
    proxy.accept()

    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", meanwhile)
    wait_until(queue, "select bool_or(waiting) from pgq.workers")
    later = jobs.enqueue(queue, "quick")
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", later)


def test_a_worker_outlives_the_crash_of_one_backend(
    home: str, hired: Workers, tmp_path: Path
) -> None:
    worker = hired.hire(*APP)
    with psycopg.connect(home, autocommit=True) as before:
        job_id = jobs.enqueue(before, "keep a diary")
        wait_until(before, "select status = 'running' from pgq.jobs where id = %s", job_id)
        # The postmaster ends all other backends too, and recovers.
        os.kill(before.info.backend_pid, signal.SIGKILL)
        worker.seen("database lost", loop="heartbeat")
    worker.seen("database back", loop="heartbeat")
    (tmp_path / "go").touch()

    with psycopg.connect(home, autocommit=True) as after:
        wait_until(after, "select status = 'done' from pgq.jobs where id = %s", job_id)
        assert jobs.row(after, job_id)["attempts"] == 1
        assert jobs.counted(after)["done"] == 1
    assert len(diary.read(tmp_path / "diary")) == 1
