"""A job in a process is made to end rung by rung, and what it started ends with it."""

import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.lifelines import lifeline
from tests.support.workers import Workers, appears, drain
from tests.worker import apart
from tests.worker.conftest import WorkOff

APP = ("--app", "tests.worker.apart:app")
SHORT = timedelta(milliseconds=100)
BACKENDS = (
    "select count(*) = %s from pg_catalog.pg_stat_activity"
    " where starts_with(application_name, 'pgq-job-') and state = 'active'"
)


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where handlers put their files."""
    monkeypatch.setenv("DESK", str(tmp_path))
    return tmp_path


def kill(queue: Connection, job_id: int) -> None:
    """Ask for a running job to be ended, whatever it takes."""
    queue.execute(
        "update pgq.jobs set cancel_requested_at = now(), kill_requested_at = now() where id = %s",
        [job_id],
    )


def test_a_handler_that_looks_at_its_flag_ends_by_it(work_off: WorkOff, queue: Connection) -> None:
    row = work_off(apart.obey, isolation="process", timeout=SHORT)

    assert (row["status"], row["attempts"]) == ("pending", 1)
    assert row["last_error"] == "timed out after 0.1s (ended by its flag)"
    (attempt,) = jobs.attempts(queue, row["id"])
    assert attempt["outcome"] == "timed out"
    assert "InterruptedError: asked to stop" in attempt["traceback"]


def test_an_async_handler_ends_by_its_cancellation(work_off: WorkOff, desk: Path) -> None:
    row = work_off(apart.obey_on_the_loop, isolation="process", timeout=SHORT)

    assert row["last_error"] == "timed out after 0.1s (ended by cancellation)"
    assert (desk / "cleaned").exists()


def test_work_that_was_done_in_spite_of_the_timeout_is_done(work_off: WorkOff) -> None:
    row = work_off(apart.finish_all_the_same, isolation="process", timeout=SHORT)

    assert (row["status"], row["result"]) == ("done", "done all the same")


def test_a_handler_that_ignores_its_flag_may_clean_up_at_sigterm(
    work_off: WorkOff, desk: Path
) -> None:
    row = work_off(apart.clean_up, isolation="process", timeout=SHORT)

    assert row["last_error"] == "timed out after 0.1s (ended by SIGTERM)"
    assert (desk / "cleaned").exists()


def test_what_ignores_all_is_killed_with_all_that_it_started(work_off: WorkOff, desk: Path) -> None:
    with lifeline(desk / "line") as line:
        payload = {"line": str(desk / "line")}
        row = work_off(apart.stubborn, payload, isolation="process", timeout=SHORT)

        assert row["last_error"] == "timed out after 0.1s (ended by SIGKILL)"
        assert line.heard() == "up\n"
        assert line.heard() == ""


def test_a_stopped_process_is_killed_and_its_query_on_the_server_is_cancelled(
    queue: Connection, fleet: Workers, desk: Path
) -> None:
    job_id = jobs.enqueue(queue, "query for ever", max_attempts=1)
    worker = fleet.start(*APP)
    wait_until(queue, BACKENDS, 1)
    os.kill(int((desk / "pid").read_text()), signal.SIGSTOP)

    kill(queue, job_id)

    wait_until(queue, "select status = 'cancelled' from pgq.jobs where id = %s", job_id)
    assert jobs.row(queue, job_id)["last_error"] == "killed by an operator (ended by SIGKILL)"
    wait_until(queue, BACKENDS, 0)
    assert worker.seen("queries cancelled")["job"] == job_id


def test_a_query_of_a_process_that_crashed_is_cancelled(
    queue: Connection, fleet: Workers, desk: Path
) -> None:
    job_id = jobs.enqueue(queue, "query for ever", max_attempts=1)
    fleet.start(*APP)
    wait_until(queue, BACKENDS, 1)

    os.kill(int((desk / "pid").read_text()), signal.SIGKILL)

    wait_until(queue, "select status = 'failed' from pgq.jobs where id = %s", job_id)
    wait_until(queue, BACKENDS, 0)


def test_a_job_that_is_asked_to_cancel_may_refuse(
    queue: Connection, fleet: Workers, desk: Path
) -> None:
    job_id = jobs.enqueue(queue, "hold the interpreter", payload={"seconds": 6})
    fleet.start(*APP)
    appears(desk / "started")

    assert jobs.cancel(queue, job_id) == ["requested"]

    wait_until(queue, "select status <> 'running' from pgq.jobs where id = %s", job_id)
    row = jobs.row(queue, job_id)
    assert (row["status"], row["attempts"]) == ("done", 1)


@pytest.mark.parametrize("kind", ["obey", "obey on the loop"])
def test_a_job_that_is_asked_to_cancel_ends_cancelled(
    queue: Connection, fleet: Workers, desk: Path, kind: str
) -> None:
    job_id = jobs.enqueue(queue, kind)
    fleet.start(*APP)
    appears(desk / "started-1")

    jobs.cancel(queue, job_id)

    wait_until(queue, "select status <> 'running' from pgq.jobs where id = %s", job_id)
    row = jobs.row(queue, job_id)
    assert (row["status"], row["last_error"]) == ("cancelled", "cancelled while it ran")


def test_the_time_of_a_job_begins_when_its_handler_is_imported(
    shared: str, queue: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOW_TO_IMPORT", "1")
    jobs.enqueue(queue, "was asked", timeout=timedelta(milliseconds=700))
    drain(shared, apart.app)

    assert jobs.rows(queue, "select result from pgq.jobs") == [{"result": False}]


def test_a_worker_that_stops_ends_what_does_not_want_to_and_hands_it_back(
    queue: Connection, fleet: Workers, desk: Path
) -> None:
    with lifeline(desk / "line") as line:
        job_id = jobs.enqueue(queue, "stubborn", payload={"line": str(desk / "line")})
        worker = fleet.start(*APP)
        assert line.heard() == "up\n"
        worker.send(signal.SIGINT)
        worker.seen("draining")
        worker.send(signal.SIGINT)

        assert worker.ended() == 128 + signal.SIGINT
        assert line.heard() == ""

    row = jobs.row(queue, job_id)
    assert (row["status"], row["attempts"]) == ("pending", 0)
    assert worker.log("handed back while it still ran") == []


def test_a_dead_workers_process_is_gone_before_the_worker_begins_anew(
    queue: Connection, elder: Connection, fleet: Workers, desk: Path
) -> None:
    with lifeline(desk / "line") as line:
        payload = {"line": str(desk / "line")}
        jobs.enqueue(queue, "stubborn", payload=payload, max_attempts=1)
        worker = fleet.start(*APP)
        assert line.heard() == "up\n"

        jobs.die(queue, worker.id)
        jobs.reap(elder)

        worker.seen("worker started", worker=f"w-{worker.id + 1}")
        assert line.heard() == ""
