"""Handlers that lay hands on what the whole process shares: the worker works on, and stops."""

from datetime import datetime
from pathlib import Path
from signal import SIGINT, SIGTERM

import pytest

from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.workers import Workers, appears

APP = ("--app", "tests.worker.careless:app")


def instant(written: str) -> float:
    return datetime.fromisoformat(written).timestamp()


def done(queue: Connection, job_id: int) -> None:
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)


def test_a_worker_speaks_though_its_application_disabled_all_loggers(fleet: Workers) -> None:
    worker = fleet.hire(*APP)
    worker.send(SIGTERM)

    assert worker.ended() == 0
    worker.seen("worker stopped")


def test_a_handler_that_stops_the_loop_ends_no_worker(queue: Connection, fleet: Workers) -> None:
    worker = fleet.hire(*APP)
    done(queue, jobs.enqueue(queue, "stop the loop"))
    done(queue, jobs.enqueue(queue, "quick"))

    worker.seen("a task of a handler tried to end the process")
    worker.send(SIGTERM)
    assert worker.ended() == 0


def test_a_worker_all_of_whose_tasks_a_handler_cancelled_says_so_in_a_line(
    queue: Connection, fleet: Workers
) -> None:
    worker = fleet.hire(*APP)
    jobs.enqueue(queue, "cancel all tasks")

    assert worker.ended() == 1
    said = worker.seen("worker cannot go on")
    assert "a handler has cancelled all tasks" in said["error"]
    assert [line for line in worker.log() if line["level"] == "stray"] == []


def test_a_handler_that_takes_the_signals_leaves_a_worker_that_drains(
    queue: Connection, fleet: Workers
) -> None:
    worker = fleet.hire(*APP)
    done(queue, jobs.enqueue(queue, "take signals"))

    worker.send(SIGTERM)
    worker.seen("draining", signal="SIGTERM")
    assert worker.ended() == 0


@pytest.mark.parametrize("kind", ["leave a pool", "hang at exit"])
def test_what_python_waits_for_at_its_exit_keeps_no_worker(
    queue: Connection, fleet: Workers, kind: str
) -> None:
    worker = fleet.hire(*APP)
    done(queue, jobs.enqueue(queue, kind))

    worker.send(SIGTERM)

    assert worker.ended() == 0
    worker.seen("the process ends, so that what handlers left behind does")


def test_an_alarm_that_a_job_left_does_not_strike_the_next_one(
    queue: Connection, fleet: Workers
) -> None:
    fleet.hire(*APP, "-c", "1")
    done(queue, jobs.enqueue(queue, "leave an alarm"))
    job_id = jobs.enqueue(queue, "outlast it")

    ended = "select status <> 'running' and attempts = 1 from pgq.jobs where id = %s"
    wait_until(queue, ended, job_id)
    assert jobs.row(queue, job_id)["status"] == "done"


def test_handlers_that_keep_all_threads_of_the_loop_keep_no_worker_from_its_end(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    worker = fleet.hire(*APP)
    crowd = [jobs.enqueue(queue, "crowd") for _ in range(40)]  # more than the loop has threads
    for job_id in crowd:
        appears(tmp_path / f"started-{job_id}")

    worker.send(SIGTERM)
    worker.seen("draining")
    worker.send(SIGINT)

    assert worker.ended() == 128 + SIGINT
    found = jobs.rows(queue, "select distinct status, attempts from pgq.jobs")
    assert found == [{"status": "pending", "attempts": 0}]


def test_what_python_waits_for_lets_no_job_run_on_that_was_handed_back(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    worker = fleet.hire(*APP)
    done(queue, jobs.enqueue(queue, "leave a pool"))
    jobs.enqueue(queue, "go on")
    appears(tmp_path / "started-1")

    worker.send(SIGTERM)
    worker.seen("draining")
    worker.send(SIGINT)

    stopped = worker.seen("worker stopped")
    assert worker.ended() == 128 + SIGINT
    ran_on = float((tmp_path / "alive").read_text()) - instant(stopped["time"])
    assert ran_on < 2  # and not the 5 seconds that Python has for its exit


def test_a_worker_whose_stdout_a_handler_has_closed_ends_well(
    queue: Connection, fleet: Workers
) -> None:
    worker = fleet.hire(*APP)
    done(queue, jobs.enqueue(queue, "close stdout"))

    worker.send(SIGTERM)

    assert worker.ended() == 0
    assert worker.log()[-1]["event"] == "worker stopped"
