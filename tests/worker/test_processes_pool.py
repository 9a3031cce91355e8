"""The child processes of a worker: what ends one charges its own job; they are replaced in time."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import pgq
from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.lifelines import lifeline
from tests.support.workers import Workers, appears, drain
from tests.worker import apart
from tests.worker.conftest import WorkOff

APP = ("--app", "tests.worker.apart:app")
RESULTS = "select result from pgq.jobs where kind = 'pid' order by id"


def pids(queue: Connection) -> list[int]:
    """In which processes the jobs of kind `pid` ran, in order."""
    return [row["result"] for row in jobs.rows(queue, RESULTS)]


def is_there(pid: int) -> bool:
    """Whether a process has this number, even one that is to be buried."""
    return Path("/proc", str(pid)).exists()


@pytest.mark.parametrize(
    ("handler", "payload", "words"),
    [
        (apart.end_process, {"code": 3}, "ended with exit code 3"),
        (apart.end_process, {"code": 0}, "ended with exit code 0"),
        (apart.end_by, {"number": int(signal.SIGKILL)}, "was ended by SIGKILL"),
        (apart.end_by, {"number": int(signal.SIGTERM)}, "was ended by SIGTERM"),
        (apart.end_by, {"number": 40}, "was ended by signal 40"),
        (apart.call_nothing, {}, "was ended by SIGSEGV"),
        (apart.close_all_descriptors, {}, "closed its line to the worker"),
    ],
)
def test_a_process_that_ends_in_the_middle_fails_its_job(
    work_off: WorkOff, handler: Any, payload: dict[str, Any], words: str
) -> None:
    row = work_off(handler, payload, isolation="process")

    assert (row["status"], row["attempts"]) == ("pending", 1)
    assert row["last_error"] == f"the process that ran it {words}"


def test_what_a_process_wrote_before_it_crashed_is_kept(
    work_off: WorkOff, queue: Connection
) -> None:
    row = work_off(apart.call_nothing, isolation="process")

    (attempt,) = jobs.attempts(queue, row["id"])
    assert "Segmentation fault" in attempt["output"]
    assert "in call_nothing" in attempt["output"]


@pytest.mark.parametrize("concurrency", [1, 4])
def test_jobs_behind_one_that_crashes_are_not_touched(
    shared: str, queue: Connection, concurrency: int
) -> None:
    crashing = jobs.enqueue(queue, "exit", payload={"code": 1}, priority=1, max_attempts=1)
    jobs.fill(queue, 50, "pid")
    drain(shared, apart.app, concurrency=concurrency)

    assert jobs.row(queue, crashing)["status"] == "failed"
    assert jobs.rows(
        queue, "select status, attempts, count(*) from pgq.jobs where kind = 'pid' group by 1, 2"
    ) == [{"status": "done", "attempts": 1, "count": 50}]


def test_a_process_is_used_again(shared: str, queue: Connection) -> None:
    jobs.fill(queue, 20, "pid")
    drain(shared, apart.app, concurrency=1)

    assert len(set(pids(queue))) == 1


def test_a_process_is_replaced_after_so_many_jobs(shared: str, queue: Connection) -> None:
    jobs.fill(queue, 10, "pid")
    drain(shared, apart.app, concurrency=1, recycle_jobs=4)

    used = pids(queue)
    assert [len(set(used[:4])), len(set(used[4:8])), len(set(used[8:]))] == [1, 1, 1]
    assert len(set(used)) == 3


def test_a_process_is_replaced_when_it_has_grown(shared: str, queue: Connection) -> None:
    app = pgq.App()
    app.job("hold", isolation="process")(apart.hold_memory)
    for megabytes in (1, 5, 60, 1):
        jobs.enqueue(queue, "hold", payload={"megabytes": megabytes})
    drain(shared, app, concurrency=1, recycle_mb=50)

    first, second, third, fourth = (
        row["result"] for row in jobs.rows(queue, "select result from pgq.jobs order by id")
    )
    assert first == second == third != fourth


def test_no_process_is_left_when_the_worker_has_ended(shared: str, queue: Connection) -> None:
    jobs.fill(queue, 20, "pid")
    jobs.enqueue(queue, "exit", payload={"code": 1})
    drain(shared, apart.app, concurrency=3, recycle_jobs=3)

    assert not [pid for pid in set(pids(queue)) if is_there(pid)]


def test_an_idle_process_that_is_killed_is_buried_and_replaced(
    queue: Connection, fleet: Workers
) -> None:
    fleet.start(*APP, "-c", "1")
    jobs.enqueue(queue, "pid")
    wait_until(queue, "select count(*) = 1 from pgq.jobs where status = 'done'")
    (first,) = pids(queue)

    os.kill(first, signal.SIGKILL)
    while is_there(first):
        queue.execute("select pg_catalog.pg_sleep(0.01)")
    jobs.enqueue(queue, "pid")

    wait_until(queue, "select count(*) = 2 from pgq.jobs where status = 'done' and attempts = 1")
    assert pids(queue)[1] != first


def test_a_process_that_dies_with_the_job_on_its_way_charges_nobody(
    queue: Connection, fleet: Workers
) -> None:
    fleet.start(*APP, "-c", "1")
    jobs.enqueue(queue, "pid")
    wait_until(queue, "select count(*) = 1 from pgq.jobs where status = 'done'")
    (first,) = pids(queue)
    os.kill(first, signal.SIGSTOP)
    second = jobs.enqueue(queue, "pid")
    wait_until(queue, "select status = 'running' from pgq.jobs where id = %s", second)

    os.kill(first, signal.SIGKILL)

    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", second)
    assert jobs.row(queue, second)["attempts"] == 1
    assert jobs.attempts(queue, second) == []


def test_a_handler_whose_module_does_not_import_there_fails_with_the_reason(
    shared: str, queue: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = pgq.App()
    app.job("pid", isolation="process")(apart.pid)
    jobs.fill(queue, 3, "pid")
    monkeypatch.setenv("FAIL_TO_IMPORT", "1")
    drain(shared, app, concurrency=1)

    (row,) = jobs.rows(queue, "select last_error, attempts, count(*) from pgq.jobs group by 1, 2")
    assert (row["attempts"], row["count"]) == (1, 3)
    assert row["last_error"] == (
        "tests.worker.apart.pid could not be imported: ImportError: told not to be imported"
    )
    attempt = jobs.rows(queue, "select traceback from pgq.attempts limit 1")
    assert "apart.py" in attempt[0]["traceback"]


@pytest.mark.parametrize("interpreter", [False, True], ids=["waits", "holds its interpreter"])
def test_a_worker_that_is_killed_leaves_no_process(
    queue: Connection, fleet: Workers, tmp_path: Path, interpreter: bool
) -> None:
    with lifeline(tmp_path / "line") as line:
        worker = fleet.start(*APP)
        payload = {"line": str(tmp_path / "line"), "interpreter": interpreter}
        jobs.enqueue(queue, "hold a line", payload=payload)
        assert line.heard() == "up\n"

        worker.send(signal.SIGKILL)

        assert line.heard() == ""


def test_a_worker_that_stops_hands_back_what_does_not_end(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, "clean up")
    worker = fleet.start(*APP)
    appears(tmp_path / "started-1")

    worker.send(signal.SIGINT)
    worker.seen("draining")
    worker.send(signal.SIGINT)

    assert worker.ended() == 128 + signal.SIGINT
    assert (tmp_path / "cleaned").exists()
    row = jobs.row(queue, job_id)
    assert (row["status"], row["attempts"]) == ("pending", 0)
