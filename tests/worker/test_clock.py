"""Hosts whose clock is ten minutes off the server's: they decide about nothing, and are told.

It is the server's clock that is set here: only the difference counts.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from signal import SIGTERM

import psycopg
import pytest

from pgq import migrate
from tests.support import cluster, jobs
from tests.support.databases import PATIENCE, wait_until
from tests.support.jobs import Connection
from tests.support.workers import PROGRAM, Workers, appears, starting

APP = ("--app", "tests.worker.handlers:app")
TEN_MINUTES = timedelta(minutes=10)

# Of Debian's package faketime; $LIB is for the loader to fill in.
LIBRARY = "/usr/$LIB/faketime/libfaketimeMT.so.1"


@pytest.fixture(scope="module", params=["-10m", "+10m"])
def elsewhen(request: pytest.FixtureRequest) -> Iterator[tuple[timedelta, str]]:
    """How far this host is ahead of a server, and the server's DSN."""
    behind = request.param.startswith("+")
    version = int(os.environ.get("PGQ_TEST_PG", "18"))
    with cluster.running(
        version,
        environment={
            "LD_PRELOAD": LIBRARY,
            "FAKETIME": request.param,
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        },
    ) as started:
        with psycopg.connect(started.dsn(), autocommit=True) as conn:
            conn.execute("alter database postgres set search_path = ''")
            migrate.install(conn)
        yield -TEN_MINUTES if behind else TEN_MINUTES, started.dsn()


@pytest.fixture
def dsn(elsewhen: tuple[timedelta, str]) -> str:
    """The server's DSN."""
    return elsewhen[1]


@pytest.fixture
def there(dsn: str) -> Iterator[Connection]:
    """A connection to an empty queue on that server."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn
        conn.execute("truncate pgq.jobs, pgq.workers, pgq.queues, pgq.throughput, pgq.attempts")


@pytest.fixture
def crew(dsn: str, tmp_path: Path) -> Iterator[Workers]:
    """Starts workers there."""
    with starting(dsn, {"DESK": str(tmp_path)}) as started:
        yield started


def pgq(dsn: str, *arguments: str) -> str:
    """What the command line prints."""
    done = subprocess.run(
        [PROGRAM, "--dsn", dsn, *arguments],
        check=True, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    return done.stdout


def test_a_wrong_clock_is_said_once_with_the_figure(
    elsewhen: tuple[timedelta, str], there: Connection, crew: Workers
) -> None:
    worker = crew.start(*APP)
    job_id = jobs.enqueue(there, "quick")
    wait_until(there, "select status = 'done' from pgq.jobs where id = %s", job_id)
    worker.send(SIGTERM)
    assert worker.ended() == 0

    side = "ahead of" if elsewhen[0] > timedelta(0) else "behind"
    said = [line["event"] for line in worker.log() if line["level"] == "warning"]
    assert said == [
        f"the clock of this host is 10m {side} the server's: all times of jobs are the server's"
    ]


def test_a_right_clock_is_not_spoken_of(queue: Connection, fleet: Workers) -> None:
    worker = fleet.start(*APP)
    job_id = jobs.enqueue(queue, "quick")
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)

    assert {line["level"] for line in worker.log()} == {"info"}


def test_workers_with_wrong_clocks_leave_live_jobs_alone(
    there: Connection, crew: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(there, "hold")
    for _ in range(2):
        crew.start(*APP).seen("worker started")
    appears(tmp_path / "started-1")
    # Both have looked for the dead, and for jobs left behind, more than once.
    wait_until(there, "select min(beat_at - started_at) > interval '9 s' from pgq.workers")
    (tmp_path / "go").touch()
    wait_until(there, "select status = 'done' from pgq.jobs where id = %s", job_id)

    row = jobs.row(there, job_id)
    assert (row["attempts"], row["losses"]) == (1, 0)
    assert jobs.value(there, "select count(*) from pgq.workers where died_at is not null") == 0


def test_delays_are_by_the_servers_clock(dsn: str, there: Connection, crew: Workers) -> None:
    later = int(pgq(dsn, "enqueue", "quick", "--delay", "5m"))
    soon = int(pgq(dsn, "enqueue", "quick", "--delay", "2s"))
    crew.start(*APP)
    wait_until(there, "select status = 'done' from pgq.jobs where id = %s", soon)

    row = jobs.row(there, soon)
    assert row["scheduled_at"] - row["created_at"] == timedelta(seconds=2)
    assert timedelta(0) <= row["locked_at"] - row["scheduled_at"] < timedelta(seconds=10)
    assert jobs.row(there, later)["attempts"] == 0


def test_ages_are_by_the_servers_clock(dsn: str, there: Connection) -> None:
    jobs.fill(there, 1)

    (counted,) = json.loads(pgq(dsn, "stats", "--output", "json"))

    assert 0 <= counted["oldest_ready_age"] < 60
