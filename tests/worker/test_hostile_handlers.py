"""Handlers that do what none should: their worker goes on, and tells the truth."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pytest

from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.workers import PROGRAM, ROOT, Workers, appears

APP = ("--app", "tests.worker.handlers:app")


def test_an_exit_out_of_a_sub_task_is_the_end_of_its_job_alone(
    queue: Connection, fleet: Workers
) -> None:
    worker = fleet.hire(*APP)
    job_id = jobs.enqueue(queue, "exit in a sub-task", max_attempts=1)
    wait_until(queue, "select status = 'failed' from pgq.jobs where id = %s", job_id)
    other = jobs.enqueue(queue, "quick")
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", other)

    assert "SystemExit" in jobs.row(queue, job_id)["last_error"]
    worker.seen("a task of a handler tried to end the process")
    worker.send(SIGTERM)
    assert worker.ended() == 0


def test_a_launcher_that_ignores_dead_children_costs_no_exit_code(
    queue: Connection, shared: str
) -> None:
    job_id = jobs.enqueue(queue, max_attempts=1)
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
        " os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [PROGRAM, "--dsn", shared, "worker", "--drain", "--exec", "exit 3"]
    subprocess.run([sys.executable, "-c", ignoring, *command], check=True, cwd=ROOT)

    row = jobs.row(queue, job_id)
    assert (row["status"], row["last_error"]) == ("failed", "the command ended with exit code 3")


@pytest.fixture
def unread(shared: str, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker whose log goes to a pipe that nobody reads."""
    reading, writing = os.pipe()
    environment = {**os.environ, "DESK": str(tmp_path)}
    command = [PROGRAM, "--dsn", shared, "worker", *APP]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=writing) as process:
        os.close(writing)
        yield process
        process.send_signal(SIGKILL)
    os.close(reading)


def test_a_log_that_nobody_reads_holds_no_worker_up(
    queue: Connection, unread: "subprocess.Popen[bytes]"
) -> None:
    loud = jobs.enqueue(queue, "log much", payload={"lines": 3_000})
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", loud)

    other = jobs.enqueue(queue, "quick")
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", other)
    wait_until(queue, "select bool_and(now() - beat_at < '3 s') from pgq.workers")
    unread.send_signal(SIGTERM)
    assert unread.wait(timeout=20) == 0


def test_what_a_killed_workers_job_runs_in_the_database_is_ended(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    jobs.enqueue(queue, "sleep in the database", max_attempts=1)
    worker = fleet.hire(*APP)
    appears(tmp_path / "started-1")
    asleep = "select count(*) = %s from pg_stat_activity where application_name like %s"
    asleep += " and state = 'active' and pid <> pg_backend_pid()"
    wait_until(queue, asleep, 1, "pgq-job-%")
    fleet.hire(*APP, "--kind", "quick")

    worker.send(signal.SIGKILL)

    wait_until(queue, "select bool_and(status = 'failed') from pgq.jobs")
    wait_until(queue, asleep, 0, "pgq-job-%")
