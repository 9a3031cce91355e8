"""Jobs that take their worker down: they end failed, and the jobs beside them end done."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIGKILL, SIGSEGV, SIGTERM

import pytest

from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.workers import Workers

APP = ("--app", "tests.worker.rough:app")


@contextmanager
def supervising(fleet: Workers) -> Iterator[list[int]]:
    """A worker that is started again whenever it ends, as by an init system; gives exit codes."""
    codes: list[int] = []
    enough = threading.Event()
    worker = fleet.start(*APP)

    def supervise() -> None:
        nonlocal worker
        codes.append(worker.ended())
        while not enough.is_set():
            worker = fleet.start(*APP)
            codes.append(worker.ended())

    thread = threading.Thread(target=supervise)
    thread.start()
    try:
        yield codes
    finally:
        enough.set()
        worker.send(SIGTERM)
        thread.join()


def hurry_the_third_attempt(queue: Connection) -> None:
    """After its second loss a job waits for minutes: not here."""
    wait_until(queue, "select bool_or(losses = 2 and scheduled_at > now()) from pgq.jobs")
    queue.execute("update pgq.jobs set scheduled_at = now() where status = 'pending'")


@pytest.mark.parametrize(
    ("kind", "max_attempts", "beside", "code"),
    [
        ("killed", 3, 20, -SIGKILL),
        # What was lost once is then in its last attempt, and taken one job at a time.
        ("killed", 2, 6, -SIGKILL),
        ("segfault", 2, 6, -SIGSEGV),
        ("exit", 2, 6, 1),
    ],
)
def test_a_deadly_job_fails_in_the_end_and_the_others_are_done(
    queue: Connection, fleet: Workers, kind: str, max_attempts: int, beside: int, code: int
) -> None:
    # Does none of the jobs, but is there to see the others die. The deadly one is first in line:
    # all are claimed together, and no other comes to its turn.
    fleet.start("--exec", "true", "-q", "other").seen("worker started")
    deadly = jobs.enqueue(queue, kind, max_attempts=max_attempts)
    for _ in range(beside):
        jobs.enqueue(queue, "harmless", max_attempts=max_attempts)

    with supervising(fleet) as codes:
        if max_attempts > 2:
            hurry_the_third_attempt(queue)
        # One after another, they take a while: half of them first.
        half = "select count(*) >= %s from pgq.jobs where finished_at is not null"
        wait_until(queue, half, beside // 2)
        wait_until(queue, "select bool_and(finished_at is not null) from pgq.jobs")

    row = jobs.row(queue, deadly)
    assert (row["status"], row["attempts"], row["losses"]) == ("failed", *[max_attempts] * 2)
    assert row["last_error"].startswith("worker lost: w-")
    assert jobs.value(queue, "select count(*) from pgq.jobs where status = 'done'") == beside
    assert [ended for ended in codes if ended] == [code] * max_attempts


def test_a_thread_that_exits_fails_its_job_alone(queue: Connection, fleet: Workers) -> None:
    job_id = jobs.enqueue(queue, "sys.exit", max_attempts=1)
    worker = fleet.start(*APP)
    wait_until(queue, "select status = 'failed' from pgq.jobs where id = %s", job_id)
    assert jobs.row(queue, job_id)["last_error"] == "SystemExit: 1"

    beside = jobs.enqueue(queue, "harmless")
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", beside)
    assert jobs.row(queue, beside)["worker_id"] == worker.id
