"""A worker behind PgBouncer in transaction mode, with two server connections: every way to run a
job, every verb, and what breaks in front of it and behind it.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from tests.support import diary, jobs, workers
from tests.support.cluster import Cluster
from tests.support.databases import Server, wait_until
from tests.support.jobs import Connection
from tests.support.pooler import Pooler, pooler
from tests.support.workers import ROOT, WorkerProcess, Workers

APP = ("--app", "tests.worker.handlers:app", "--poll", "0.1s")

ASLEEP: LiteralString = (
    "select exists (select from pg_catalog.pg_stat_activity"
    " where starts_with(application_name, 'pgq-job-') and query ~ 'pg_sleep' and state = 'active')"
)


@pytest.fixture
def between(home: str) -> Iterator[Pooler]:
    """A pooler before a database of the test's own, on a server that the test may break."""
    with pooler(home, size=2, retry=1) as made:
        yield made


@pytest.fixture
def crew(between: Pooler, tmp_path: Path) -> Iterator[Workers]:
    """Starts workers that work through the pooler."""
    with workers.starting(between.dsn, {"DESK": str(tmp_path)}) as started:
        yield started


@pytest.fixture
def direct(home: str) -> Iterator[Connection]:
    """A connection past the pooler, to look on."""
    with psycopg.connect(home, autocommit=True) as conn:
        yield conn


def pgq(dsn: str, *arguments: str) -> str:
    """What the command line prints, through the pooler; it must succeed."""
    program = "import sys; from pgq_cli.app import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "--dsn", dsn, *arguments],
        check=False, capture_output=True, text=True, cwd=ROOT, timeout=30,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def polls(worker: WorkerProcess) -> int:
    """How often a worker said that a pooler makes it poll."""
    return sum(line["event"].startswith("a pooler is between") for line in worker.log())


def test_every_way_to_run_a_job_works_through_a_pooler(
    crew: Workers, direct: Connection, tmp_path: Path
) -> None:
    worker = crew.hire(*APP)
    commands = crew.hire("--exec", "cat; exit $((PGQ_ATTEMPT - 2))", "-q", "sh", "--poll", "0.1s")
    held = [jobs.enqueue(direct, kind) for kind in ("keep a diary", "hold a thread")]
    command = jobs.enqueue(direct, queue="sh", max_attempts=2)
    wait_until(direct, "select count(*) = 2 from pgq.jobs where status = 'running'")
    jobs.fill(direct, 200, "quick")
    wait_until(direct, "select count(*) = 200 from pgq.jobs where status = 'done'")
    (tmp_path / "go").touch()
    wait_until(direct, "select bool_and(status = 'done') from pgq.jobs where id = any (%s)", held)
    wait_until(direct, "select attempts = 1 from pgq.jobs where id = %s", command)
    direct.execute("update pgq.jobs set scheduled_at = now() where status = 'pending'")
    wait_until(direct, "select status = 'done' from pgq.jobs where id = %s", command)

    assert jobs.row(direct, command)["attempts"] == 2
    assert jobs.counted(direct) == {"done": 203, "failed": 0, "retried": 1}
    assert polls(worker) == polls(commands) == 1


def test_a_handler_in_a_process_works_through_a_pooler(crew: Workers, direct: Connection) -> None:
    ids = [jobs.enqueue(direct, "pid") for _ in range(4)]
    crashing = jobs.enqueue(direct, "exit", payload={"code": 3}, max_attempts=1)

    crew.hire("--app", "tests.worker.apart:app", "--poll", "0.1s")

    wait_until(direct, "select bool_and(status = 'done') from pgq.jobs where id = any (%s)", ids)
    wait_until(direct, "select status = 'failed' from pgq.jobs where id = %s", crashing)


def test_what_a_handler_asks_again_and_again_is_answered_through_a_pooler(
    crew: Workers, direct: Connection
) -> None:
    jobs.fill(direct, 8, "ask often")

    crew.hire(*APP, "-c", "4")

    wait_until(direct, "select count(*) = 8 from pgq.jobs where status = 'done'")
    assert jobs.counted(direct)["retried"] == 0


def test_a_job_that_waits_for_its_own_query_is_killed_through_a_pooler(
    between: Pooler, crew: Workers, direct: Connection
) -> None:
    job_id = jobs.enqueue(direct, "sleep in the database")
    crew.hire(*APP)
    wait_until(direct, ASLEEP)

    pgq(between.dsn, "kill", str(job_id), "--wait", "20s")

    killed = jobs.row(direct, job_id)
    assert (killed["status"], killed["attempts"]) == ("cancelled", 1)
    assert killed["last_error"] == "killed by an operator (ended by cancelling its queries)"
    wait_until(direct, f"select not ({ASLEEP})")


def test_the_command_line_works_through_a_pooler(
    between: Pooler, crew: Workers, direct: Connection, tmp_path: Path
) -> None:
    crew.hire(*APP)
    waited = pgq(between.dsn, "enqueue", "quick")
    assert pgq(between.dsn, "wait", waited, "--timeout", "10s") == "null"
    cancelled = pgq(between.dsn, "enqueue", "keep a diary")
    wait_until(direct, "select status = 'running' from pgq.jobs where id = %s", int(cancelled))

    pgq(between.dsn, "cancel", cancelled)

    wait_until(direct, "select status = 'cancelled' from pgq.jobs where id = %s", int(cancelled))
    assert waited in pgq(between.dsn, "jobs")
    pgq(between.dsn, "requeue", cancelled)
    (tmp_path / "go").touch()
    wait_until(direct, "select status = 'done' from pgq.jobs where id = %s", int(cancelled))


def test_a_database_is_installed_through_a_pooler(own: Cluster) -> None:
    with Server(own.dsn()).database() as blank, pooler(blank, size=2) as between:
        pgq(between.dsn, "install")
        pgq(between.dsn, "install")
        assert int(pgq(between.dsn, "enqueue", "quick")) > 0


def test_a_pooler_that_is_started_anew_is_waited_for(
    between: Pooler, crew: Workers, direct: Connection, tmp_path: Path
) -> None:
    worker = crew.hire(*APP, "-c", "5")
    kept = jobs.enqueue(direct, "keep a diary")
    jobs.fill(direct, 200, "linger")
    wait_until(direct, "select count(*) > 20 from pgq.jobs where status = 'done'")

    between.stop()
    worker.seen("database lost", loop="heartbeat")
    between.start()

    (tmp_path / "go").touch()
    wait_until(direct, "select bool_and(status = 'done') from pgq.jobs")
    assert_ran_once(direct, worker, diary.read(tmp_path / "diary"), kept)


def test_a_server_that_is_started_anew_behind_its_pooler_is_waited_for(
    own: Cluster, home: str, crew: Workers, tmp_path: Path
) -> None:
    worker = crew.hire(*APP, "-c", "5")
    with psycopg.connect(home, autocommit=True) as before:
        kept = jobs.enqueue(before, "keep a diary")
        jobs.fill(before, 200, "linger")
        wait_until(before, "select count(*) > 20 from pgq.jobs where status = 'done'")
        own.restart("fast")

    (tmp_path / "go").touch()
    with psycopg.connect(home, autocommit=True) as after:
        wait_until(after, "select bool_and(status = 'done') from pgq.jobs")
        assert_ran_once(after, worker, diary.read(tmp_path / "diary"), kept)


def assert_ran_once(
    conn: Connection, worker: WorkerProcess, runs: list[diary.Run], job_id: int
) -> None:
    """All ran once, nobody was declared dead, and each loop spoke of the loss at most once."""
    assert [run.job for run in runs] == [job_id]
    assert jobs.counted(conn)["done"] == 201
    assert jobs.rows(conn, "select distinct attempts, losses from pgq.jobs") == [
        {"attempts": 1, "losses": 0}
    ]
    assert jobs.value(conn, "select count(*) from pgq.workers where died_at is not null") == 0
    assert polls(worker) == 1
    for loop in ("claim", "finish", "heartbeat"):
        assert worker.said("database lost", loop=loop) <= 1
