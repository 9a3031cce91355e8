"""Two sessions, step by step: who waits for whom, and what the one that waited finds."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import psycopg
import pytest

from pgq.errors import WorkerDead
from pgq.model import Failed, HandedBack
from tests.support import jobs
from tests.support.databases import wait_until_blocked
from tests.support.jobs import Connection

T = TypeVar("T")


@pytest.fixture
def first(shared: str) -> Iterator[Connection]:
    """The session that acts first; its transaction stays open until it says so."""
    with psycopg.connect(shared) as conn:
        yield conn
        conn.rollback()


@pytest.fixture
def second(shared: str) -> Iterator[Connection]:
    """The session that comes between."""
    with psycopg.connect(shared, autocommit=True) as conn:
        yield conn


@contextmanager
def blocked(shared: str, conn: Connection, step: Callable[[], T]) -> Iterator[Future[T]]:
    """The step is begun and waits for a lock while the block begins; it has ended after it."""
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(step)
        wait_until_blocked(shared, conn.info.backend_pid)
        yield future


def test_a_finish_that_waited_for_a_reap_has_lost_its_lease(
    shared: str, first: Connection, second: Connection
) -> None:
    worker_id = jobs.register(second)
    jobs.enqueue(second)
    job = jobs.claim_one(second, worker_id)
    jobs.die(second, worker_id)
    assert jobs.reap(first) == {job.id: "pending"}

    with blocked(shared, second, lambda: jobs.finish(second, worker_id, job)) as finish:
        first.commit()

    assert finish.result() == [job.id]
    row = jobs.row(second, job.id)
    assert (row["status"], row["losses"]) == ("pending", 1)
    assert jobs.counted(second) == {"done": 0, "failed": 0, "retried": 1}


def test_a_finish_that_waited_for_a_reap_that_was_undone_lands(
    shared: str, first: Connection, second: Connection
) -> None:
    worker_id = jobs.register(second)
    jobs.enqueue(second)
    job = jobs.claim_one(second, worker_id)
    jobs.die(second, worker_id)
    jobs.reap(first)

    with blocked(shared, second, lambda: jobs.finish(second, worker_id, job)) as finish:
        first.rollback()

    assert finish.result() == []
    assert jobs.row(second, job.id)["status"] == "done"


def test_a_settlement_that_waited_for_a_forced_requeue_has_lost_its_lease(
    shared: str, first: Connection, second: Connection
) -> None:
    worker_id = jobs.register(second)
    jobs.enqueue(second)
    job = jobs.claim_one(second, worker_id)
    assert jobs.requeue(first, job.id, force=True) == ["requeued"]

    with blocked(
        shared, second, lambda: jobs.settle(second, worker_id, Failed("late"), job)
    ) as settle:
        first.commit()

    assert settle.result() == [job.id]
    (attempt,) = jobs.attempts(second, job.id)
    assert attempt["error"].startswith("requeued by an operator by force")
    assert jobs.row(second, job.id)["last_error"] is None


def test_a_requeue_that_waited_for_a_finish_requeues_what_is_done(
    shared: str, first: Connection, second: Connection
) -> None:
    worker_id = jobs.register(second)
    jobs.enqueue(second)
    job = jobs.claim_one(second, worker_id)
    jobs.finish(first, worker_id, job)

    with blocked(shared, second, lambda: jobs.requeue(second, job.id)) as requeue:
        first.commit()

    assert requeue.result() == ["requeued"]
    assert jobs.row(second, job.id)["status"] == "pending"


def test_a_cancel_that_waited_for_a_finish_is_told_already_done(
    shared: str, first: Connection, second: Connection
) -> None:
    worker_id = jobs.register(second)
    jobs.enqueue(second)
    job = jobs.claim_one(second, worker_id)
    jobs.finish(first, worker_id, job)

    with blocked(shared, second, lambda: jobs.cancel(second, job.id)) as cancel:
        first.commit()

    assert cancel.result() == ["already done"]
    assert jobs.row(second, job.id)["status"] == "done"


def test_a_cancel_that_waited_for_a_hand_back_cancels_what_is_pending(
    shared: str, first: Connection, second: Connection
) -> None:
    worker_id = jobs.register(second)
    jobs.enqueue(second)
    job = jobs.claim_one(second, worker_id)
    jobs.settle(first, worker_id, HandedBack(), job)

    with blocked(shared, second, lambda: jobs.cancel(second, job.id)) as cancel:
        first.commit()

    assert cancel.result() == ["cancelled"]
    assert jobs.row(second, job.id)["status"] == "cancelled"


def test_a_cancel_that_waited_for_a_claim_is_a_request(
    shared: str, first: Connection, second: Connection
) -> None:
    worker_id = jobs.register(second)
    job_id = jobs.enqueue(second)
    job = jobs.claim_one(first, worker_id)

    with blocked(shared, second, lambda: jobs.cancel(second, job_id)) as cancel:
        first.commit()

    assert cancel.result() == ["requested"]
    assert jobs.finish(second, worker_id, job) == []


def test_a_failure_that_waited_for_a_cancel_request_ends_cancelled(
    shared: str, first: Connection, second: Connection
) -> None:
    worker_id = jobs.register(second)
    jobs.enqueue(second)
    job = jobs.claim_one(second, worker_id)
    assert jobs.cancel(first, job.id) == ["requested"]

    with blocked(
        shared, second, lambda: jobs.settle(second, worker_id, Failed("no luck"), job)
    ) as settle:
        first.commit()

    assert settle.result() == []
    assert jobs.row(second, job.id)["status"] == "cancelled"


def test_a_claim_passes_by_a_job_that_is_being_cancelled(
    first: Connection, second: Connection
) -> None:
    worker_id = jobs.register(second)
    jobs.fill(second, 2)
    (one, other) = (row["id"] for row in jobs.rows(second, "select id from pgq.jobs order by id"))
    jobs.cancel(first, one)

    assert [job.id for job in jobs.claim(second, worker_id)] == [other]
    first.rollback()
    assert [job.id for job in jobs.claim(second, worker_id)] == [one]


def test_a_claim_that_waited_for_its_workers_death_is_refused(
    shared: str, first: Connection, second: Connection
) -> None:
    worker_id = jobs.register(second)
    jobs.enqueue(second)
    first.execute("select from pgq.workers for update")
    jobs.die(first, worker_id)

    with blocked(shared, second, lambda: jobs.claim(second, worker_id)) as claim:
        first.commit()

    with pytest.raises(WorkerDead):
        claim.result()
    assert jobs.value(second, "select status from pgq.jobs") == "pending"


def test_a_worker_in_the_middle_of_a_claim_is_not_declared_dead(
    first: Connection, elder: Connection
) -> None:
    worker_id = jobs.register(elder, lock_key=4711)
    jobs.enqueue(elder)
    jobs.fall_silent(elder, worker_id)
    (job,) = jobs.claim(first, worker_id)

    assert jobs.reap(elder) == {}
    first.commit()

    assert jobs.reap(elder) == {job.id: "pending"}


def test_two_reapers_share_the_dead_between_them(first: Connection, elder: Connection) -> None:
    first_dead, second_dead = (jobs.register(elder, lock_key=key) for key in (1, 2))
    jobs.fill(elder, 2)
    taken = [jobs.claim_one(elder, worker_id) for worker_id in (first_dead, second_dead)]
    for worker_id in (first_dead, second_dead):
        jobs.fall_silent(elder, worker_id, timedelta(seconds=5))
    first.execute("select from pgq.workers where id = %s for update", (first_dead,))

    assert jobs.reap(elder) == {taken[1].id: "pending"}
    first.commit()
    assert jobs.reap(elder) == {taken[0].id: "pending"}
