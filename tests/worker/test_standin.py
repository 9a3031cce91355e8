"""A worker whose interpreter does not answer is alive; its stand-in says so."""

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP

import pytest

from tests.support import jobs
from tests.support.databases import PATIENCE, wait_until
from tests.support.jobs import Connection
from tests.support.workers import Workers, appears

APP = ("--app", "tests.worker.handlers:app")


@pytest.fixture
def impatient(queue: Connection) -> Iterator[Connection]:
    """The queue with the shortest visibility timeout."""
    queue.execute(
        "insert into pgq.queues (queue, visibility_timeout) values ('default', '10 s')"
        " on conflict (queue) do update set visibility_timeout = excluded.visibility_timeout"
    )
    yield queue
    queue.execute("delete from pgq.queues")


def children(pid: int) -> list[int]:
    """The processes that a process has started and that live."""
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in listed for child in path.read_text().split()]


def stand_in_of(pid: int, *, other_than: int = 0) -> int:
    """Wait for the stand-in of a worker's process."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for child in children(pid):
            if child != other_than and "pgq.worker.standin" in _arguments(child):
                return child
        time.sleep(0.01)
    raise AssertionError("no stand-in")


def ends(pid: int) -> bool:
    """Whether a process ends soon; it is killed where it does not."""
    deadline = time.monotonic() + PATIENCE
    while _arguments(pid):
        if time.monotonic() > deadline:
            os.kill(pid, SIGKILL)
            return False
        time.sleep(0.01)
    return True


def _arguments(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_a_handler_that_holds_the_interpreter_is_not_taken_for_dead(
    impatient: Connection, fleet: Workers
) -> None:
    worker = fleet.start(*APP, "--kind", "hold the interpreter")
    fleet.start(*APP, "--kind", "hold")
    worker.seen("worker started")
    first = stand_in_of(worker.pid)
    os.kill(first, SIGKILL)  # another one takes its place
    stand_in_of(worker.pid, other_than=first)
    job_id = jobs.enqueue(impatient, "hold the interpreter", payload={"seconds": 13})

    wait_until(impatient, "select bool_or(starts_with(trouble, 'code that')) from pgq.workers")
    wait_until(impatient, "select status = 'done' from pgq.jobs where id = %s", job_id)

    row = jobs.row(impatient, job_id)
    assert (row["worker_id"], row["attempts"], row["losses"]) == (worker.id, 1, 0)
    assert row["finished_at"] - row["locked_at"] > timedelta(seconds=10)
    assert jobs.value(impatient, "select count(*) from pgq.workers where died_at is not null") == 0
    worker.seen("heartbeat was late")
    wait_until(impatient, "select bool_and(trouble is null) from pgq.workers")


def test_a_stopped_worker_is_not_stood_in_for(
    impatient: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(impatient, "hold")
    stopped = fleet.start(*APP)
    appears(tmp_path / "started-1")
    stand_in_of(stopped.pid)
    fleet.start(*APP)
    stopped.send(SIGSTOP)

    wait_until(impatient, "select died_at is not null from pgq.workers where id = %s", stopped.id)

    appears(tmp_path / "started-2")
    (tmp_path / "go").touch()
    stopped.send(SIGCONT)
    stopped.seen("declared dead by others")
    wait_until(impatient, "select status = 'done' from pgq.jobs where id = %s", job_id)


def test_a_stand_in_ends_with_the_worker_for_which_it_beats(
    queue: Connection, fleet: Workers
) -> None:
    jobs.enqueue(queue, "hold the interpreter", payload={"seconds": 60})
    worker = fleet.start(*APP)
    stand_in = stand_in_of(worker.pid)
    wait_until(queue, "select bool_and(starts_with(trouble, 'code that')) from pgq.workers")

    worker.send(SIGKILL)

    assert ends(stand_in), "it outlives its worker"


def test_an_odd_path_costs_no_worker_its_stand_in(queue: Connection, fleet: Workers) -> None:
    worker = fleet.hire(*APP)
    jobs.enqueue(queue, "make the path odd")
    wait_until(queue, "select bool_and(status = 'done') from pgq.jobs")
    jobs.enqueue(queue, "hold the interpreter", payload={"seconds": 7})

    wait_until(queue, "select bool_or(starts_with(trouble, 'code that')) from pgq.workers")
    wait_until(queue, "select bool_and(status = 'done') from pgq.jobs")
    wait_until(queue, "select bool_and(trouble is null) from pgq.workers")
    assert worker.log("the stand-in ended") == []
