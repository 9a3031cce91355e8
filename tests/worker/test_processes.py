"""Handlers that run in child processes."""

import os

from tests.support import jobs
from tests.support.jobs import Connection
from tests.worker import apart
from tests.worker.conftest import WorkOff


def test_a_handler_runs_in_a_process_of_its_own(work_off: WorkOff) -> None:
    row = work_off(apart.pid, isolation="process")

    assert (row["status"], row["attempts"]) == ("done", 1)
    assert row["result"] != os.getpid()


def test_an_async_handler_has_an_event_loop_there(work_off: WorkOff) -> None:
    row = work_off(apart.on_a_loop, isolation="process")

    assert (row["status"], row["result"]) == ("done", "work 1")


def test_a_crash(work_off: WorkOff, queue: Connection) -> None:
    row = work_off(apart.crashes, isolation="process")
    assert row["last_error"] == "the process that ran it was ended by SIGSEGV"
    row = work_off(apart.exits, {"code": 3}, isolation="process")
    assert row["last_error"] == "the process that ran it ended with exit code 3"
    print(jobs.attempts(queue, row["id"]))
