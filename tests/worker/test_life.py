"""Who is alive: a dead worker's jobs run elsewhere, and nobody who lives is taken for dead."""

import os
import sys
from datetime import datetime, timedelta
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM

import pytest

from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.lifelines import lifeline
from tests.support.pooler import pooling
from tests.support.workers import Workers, appears

APP = ("--app", "tests.worker.handlers:app")
ROUGH = ("--app", "tests.worker.rough:app")
PROMISED = timedelta(seconds=10)
"""Twice what the protocol promises of a quiet machine."""

# Notes its attempt if no other one lives; the first one then goes on, with a child.
ALONE = """
import fcntl, os, subprocess, sys
lock = open(os.path.join(os.environ["DESK"], "lock"), "w")
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
open(os.path.join(os.environ["DESK"], "started-" + os.environ["PGQ_ATTEMPT"]), "w").close()
if os.environ["PGQ_ATTEMPT"] == "1":
    subprocess.run(["sleep", "300"], pass_fds=[lock.fileno()])
"""


def clock(conn: Connection) -> datetime:
    instant: datetime = jobs.value(conn, "select clock_timestamp()")
    return instant


def test_a_killed_workers_job_runs_elsewhere_soon(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, "hold")
    first = fleet.start(*APP)
    appears(tmp_path / "started-1")
    second = fleet.start(*APP)
    second.seen("worker started")

    killed_at = clock(queue)
    first.send(SIGKILL)
    appears(tmp_path / "started-2")
    (tmp_path / "go").touch()
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)

    row = jobs.row(queue, job_id)
    assert (row["worker_id"], row["attempts"], row["losses"]) == (second.id, 2, 1)
    assert row["locked_at"] - killed_at < PROMISED
    (attempt,) = jobs.attempts(queue, job_id)
    assert (attempt["outcome"], attempt["worker_id"]) == ("lost", first.id)
    assert attempt["error"].startswith(f"worker lost: w-{first.id} (")
    assert second.seen("dead worker's jobs given back")["worker"] == f"w-{first.id}"


def test_children_that_outlive_a_killed_worker_do_not_keep_its_jobs(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, "spawn and hold")
    first = fleet.start(*ROUGH)
    appears(tmp_path / "started-1")
    second = fleet.start(*ROUGH)
    second.seen("worker started")

    killed_at = clock(queue)
    first.send(SIGKILL)
    appears(tmp_path / "started-2")
    (tmp_path / "go").touch()
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)

    assert jobs.row(queue, job_id)["locked_at"] - killed_at < PROMISED
    for attempt in (1, 2):
        for child in (tmp_path / f"children-{attempt}").read_text().split():
            os.kill(int(child), SIGKILL)  # it was alive until now


def test_the_jobs_of_the_only_worker_run_soon_after_the_next_one_starts(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, "hold")
    first = fleet.start(*APP)
    appears(tmp_path / "started-1")
    first.send(SIGKILL)
    assert first.ended() == -SIGKILL

    second = fleet.start(*APP)
    (tmp_path / "go").touch()
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)

    began = jobs.value(queue, "select started_at from pgq.workers where id = %s", second.id)
    assert jobs.row(queue, job_id)["locked_at"] - began < PROMISED


def test_a_worker_that_can_hold_no_lock_is_dead_after_the_visibility_timeout(
    queue: Connection, shared: str, fleet: Workers, tmp_path: Path
) -> None:
    queue.execute(
        "insert into pgq.queues (queue, visibility_timeout) values ('default', '10 seconds')"
    )
    job_id = jobs.enqueue(queue, "hold")
    with pooling(shared, size=2) as pooled:
        first = fleet.start(*APP, dsn=pooled)
        appears(tmp_path / "started-1")
        second = fleet.start(*APP, dsn=pooled)
        second.seen("worker started")
        first.send(SIGKILL)
        beaten_at = jobs.value(queue, "select beat_at from pgq.workers where id = %s", first.id)
        appears(tmp_path / "started-2")
        (tmp_path / "go").touch()
        wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)

    row = jobs.row(queue, job_id)
    assert (row["worker_id"], row["attempts"]) == (second.id, 2)
    assert timedelta(seconds=10) <= row["locked_at"] - beaten_at < timedelta(seconds=16)


def test_jobs_of_workers_that_nobody_knows_any_more_run_all_the_same(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, "hold")
    first = fleet.start(*APP)
    appears(tmp_path / "started-1")
    first.send(SIGKILL)
    assert first.ended() == -SIGKILL
    queue.execute("delete from pgq.workers")

    (tmp_path / "go").touch()
    fleet.start(*APP)

    wait_until(queue, "select status = 'done' and attempts = 2 from pgq.jobs where id = %s", job_id)


def test_a_killed_workers_command_is_gone_before_it_runs_again(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    script = tmp_path / "alone.py"
    script.write_text(ALONE)
    command = ("--exec", f"{sys.executable} {script}")
    job_id = jobs.enqueue(queue)
    first = fleet.start(*command)
    appears(tmp_path / "started-1")
    fleet.start(*command).seen("worker started")

    first.send(SIGKILL)

    wait_until(queue, "select status <> 'running' and attempts = 2 from pgq.jobs")
    row = jobs.row(queue, job_id)
    assert (row["status"], row["last_error"]) == ("done", None)


def test_a_killed_workers_commands_end_with_it(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    jobs.enqueue(queue)
    with lifeline(tmp_path / "line") as line:
        worker = fleet.start("--exec", 'exec 9>"$DESK/line"; echo up >&9; (sleep 300 &); sleep 300')
        assert line.heard() == "up\n"
        worker.send(SIGKILL)
        assert line.heard() == ""


def test_a_worker_that_was_frozen_for_too_long_changes_nothing_and_begins_anew(
    queue: Connection, elder: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, "hold")
    frozen = fleet.start(*APP)
    appears(tmp_path / "started-1")
    frozen.send(SIGSTOP)
    jobs.fall_silent(queue, frozen.id, timedelta(minutes=2))
    assert jobs.reap(elder) == {job_id: "pending"}
    (tmp_path / "go").touch()
    other = fleet.start(*APP)
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)
    before = jobs.row(queue, job_id)

    frozen.send(SIGCONT)

    assert frozen.seen("declared dead by others")["level"] == "error"
    assert frozen.seen("lease lost")["job"] == job_id
    begun_anew = frozen.seen("worker started", worker=f"w-{other.id + 1}")
    again = jobs.enqueue(queue, "quick")
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", again)
    assert jobs.row(queue, job_id) == before
    assert before["worker_id"] == other.id
    assert begun_anew["level"] == "info"
    frozen.send(SIGTERM)
    assert frozen.ended() == 0


def test_a_dead_workers_thread_is_asked_to_stop(
    queue: Connection, elder: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, "hold a thread", max_attempts=1)
    # Full, it claims nothing: only its heartbeat hears of it.
    worker = fleet.start(*APP, "-c", "1", "--kind", "hold a thread")
    appears(tmp_path / "started-1")
    jobs.die(queue, worker.id)
    jobs.reap(elder)

    worker.seen("worker started", worker=f"w-{worker.id + 1}")
    row = jobs.row(queue, job_id)
    assert (row["status"], row["last_error"][:12]) == ("failed", "worker lost:")


@pytest.mark.parametrize("kind", ["ignore all", "leave a thread", "swallow", "block at the end"])
def test_a_dead_workers_job_that_does_not_stop_ends_with_its_process(
    queue: Connection, elder: Connection, fleet: Workers, tmp_path: Path, kind: str
) -> None:
    job_id = jobs.enqueue(queue, kind, max_attempts=1)
    worker = fleet.start(*APP, "-c", "1", "--kind", kind)
    appears(tmp_path / "started-1")
    jobs.die(queue, worker.id)
    jobs.reap(elder)

    assert worker.ended() == 1
    assert worker.seen("the process ends")["reason"] == "1 jobs do not stop"
    assert jobs.row(queue, job_id)["status"] == "failed"


def test_a_terminated_heartbeat_is_no_death(
    queue: Connection, elder: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, "hold")
    worker = fleet.start(*APP)
    appears(tmp_path / "started-1")
    queue.execute(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
        " where datname = current_database() and application_name = 'pgq worker heartbeat'"
    )
    assert jobs.reap(elder) == {}
    worker.seen("database back", loop="heartbeat")
    (tmp_path / "go").touch()

    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)
    assert jobs.row(queue, job_id)["attempts"] == 1
