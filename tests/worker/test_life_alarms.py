"""Nobody who lives is taken for dead: busy workers, suspended hosts, a server that stood still.

The queues here have the shortest visibility timeout that there is, ten seconds.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import psycopg
import pytest

from tests.support import jobs, processes
from tests.support.cluster import Cluster
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.workers import WorkerProcess, Workers, appears

APP = ("--app", "tests.worker.rough:app")
HOLD = ("--app", "tests.worker.handlers:app")
TOO_LONG = 12.0
"""Seconds; longer than the visibility timeout."""


def impatient(conn: Connection) -> None:
    """Make ten seconds of silence enough to be dead."""
    conn.execute(
        "insert into pgq.queues (queue, visibility_timeout) values ('default', '10 seconds')"
    )


def lost(conn: Connection) -> tuple[int, int]:
    """How many workers were declared dead, and how many jobs were taken from one."""
    dead = jobs.value(conn, "select count(*) from pgq.workers where died_at is not null")
    taken = jobs.value(conn, "select count(*) from pgq.jobs where losses > 0 or attempts > 1")
    return dead, taken


@pytest.mark.parametrize("kind", ["sleep", "compute"])
def test_a_handler_that_lets_nothing_else_happen_is_not_taken_for_dead(
    queue: Connection, fleet: Workers, kind: str
) -> None:
    impatient(queue)
    busy = fleet.start(*APP, "--kind", kind)
    fleet.start(*APP, "--kind", "harmless").seen("worker started")
    job_id = jobs.enqueue(queue, kind, payload={"seconds": TOO_LONG})

    wait_until(queue, "select status <> 'running' and attempts > 0 from pgq.jobs")

    row = jobs.row(queue, job_id)
    assert (row["status"], row["worker_id"], row["attempts"]) == ("done", busy.id, 1)
    assert row["finished_at"] - row["locked_at"] > timedelta(seconds=10)
    assert lost(queue) == (0, 0)


@contextmanager
def standing_still(own: Cluster) -> Iterator[None]:
    """Every process of a server is stopped while the block runs."""
    postmaster = int((own.data / "postmaster.pid").read_text().split()[0])
    os.kill(postmaster, SIGSTOP)
    children = processes.children(postmaster)
    for pid in children:
        os.kill(pid, SIGSTOP)
    try:
        yield
    finally:
        for pid in (*children, postmaster):
            os.kill(pid, SIGCONT)


def hired_to_hold(conn: Connection, fleet: Workers) -> list[WorkerProcess]:
    """Two workers, each in the middle of a job that goes on until there is a file `go`."""
    impatient(conn)
    jobs.fill(conn, 2, "hold")
    crew = [fleet.start(*HOLD, "-c", "1") for _ in range(2)]
    for worker in crew:
        worker.seen("worker started")
    wait_until(conn, "select bool_and(status = 'running') from pgq.jobs")
    return crew


def come_back(conn: Connection, crew: Sequence[WorkerProcess]) -> None:
    """Let stopped workers go on; the first one beats while the other is still silent.

    Only once: it may judge the other after 4 seconds, which a busy machine makes of two beats.
    """
    for worker, seconds in zip(crew, (0, 6.5), strict=True):
        back_at = jobs.value(conn, "select clock_timestamp()")
        worker.send(SIGCONT)
        wait_until(
            conn,
            "select beat_at - %s > %s from pgq.workers where id = %s",
            back_at,
            timedelta(seconds=seconds),
            worker.id,
        )


def test_workers_that_were_stopped_together_do_not_bury_one_another(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    crew = hired_to_hold(queue, fleet)
    for worker in crew:
        worker.send(SIGSTOP)
    wait_until(queue, "select max(beat_at) < now() - interval '11 seconds' from pgq.workers")
    come_back(queue, crew)
    (tmp_path / "go").touch()

    wait_until(queue, "select bool_and(status = 'done') from pgq.jobs")
    assert lost(queue) == (0, 0)


def test_a_host_that_was_suspended_with_its_server_wakes_up_with_all_its_workers(
    own: Cluster, home: str, hired: Workers, tmp_path: Path
) -> None:
    with psycopg.connect(home, autocommit=True) as conn:
        crew = hired_to_hold(conn, hired)
        with standing_still(own):
            for worker in crew:
                worker.send(SIGSTOP)
            time.sleep(11)  # nobody can be asked meanwhile
        come_back(conn, crew)
        (tmp_path / "go").touch()

        wait_until(conn, "select bool_and(status = 'done') from pgq.jobs")
        assert lost(conn) == (0, 0)


def test_a_server_that_stood_still_costs_nobody_his_life(
    own: Cluster, home: str, hired: Workers, tmp_path: Path
) -> None:
    with psycopg.connect(home, autocommit=True) as conn:
        crew = hired_to_hold(conn, hired)
        with standing_still(own):
            time.sleep(11)  # nobody can be asked meanwhile
        back_at = jobs.value(conn, "select clock_timestamp()")
        wait_until(conn, "select min(beat_at) - %s > interval '5 s' from pgq.workers", back_at)
        (tmp_path / "go").touch()

        wait_until(conn, "select bool_and(status = 'done') from pgq.jobs")
        assert lost(conn) == (0, 0)
        assert all(not worker.log("declared dead") for worker in crew)


def test_a_frozen_worker_is_found_out_all_the_same(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    impatient(queue)
    job_id = jobs.enqueue(queue, "hold")
    frozen = fleet.start(*HOLD)
    appears(tmp_path / "started-1")
    other = fleet.start(*HOLD)
    other.seen("worker started")
    frozen.send(SIGSTOP)

    wait_until(queue, "select attempts = 2 from pgq.jobs where id = %s", job_id)
    row = jobs.row(queue, job_id)
    silence = jobs.value(
        queue, "select %s - beat_at from pgq.workers where id = %s", row["locked_at"], frozen.id
    )
    assert row["worker_id"] == other.id
    assert timedelta(seconds=10) <= silence < timedelta(seconds=16)
