"""What of a worker cannot do its work is seen in its row, while the worker goes on."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.workers import Workers

APP = ("--app", "tests.worker.handlers:app")

GUARD = """
create function public.refuse() returns trigger language plpgsql as $$
begin raise exception 'not on my watch'; end $$;
create trigger refuse before update on pgq.jobs for each row
    when (old.status = 'running' and new.status <> 'running') execute function public.refuse();
"""


@pytest.fixture
def guarded(queue: Connection) -> Iterator[Connection]:
    """A queue in which a trigger of somebody else refuses every end of a job."""
    queue.execute(GUARD)
    yield queue
    queue.execute("drop trigger if exists refuse on pgq.jobs; drop function public.refuse")


def test_a_blocked_event_loop_is_seen_from_outside(queue: Connection, fleet: Workers) -> None:
    fleet.start(*APP, "--kind", "block the loop")
    job_id = jobs.enqueue(queue, "block the loop", payload={"seconds": 7})

    wait_until(queue, "select bool_or(starts_with(trouble, 'an async handler')) from pgq.workers")
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)
    wait_until(queue, "select bool_and(trouble is null) from pgq.workers")


def test_outcomes_that_the_database_refuses_are_seen_and_written_later(
    guarded: Connection, fleet: Workers
) -> None:
    worker = fleet.start(*APP, "--kind", "quick")
    job_id = jobs.enqueue(guarded, "quick")

    wait_until(
        guarded,
        "select bool_or(trouble = 'the database refuses the outcome of 1 jobs') from pgq.workers",
    )
    assert "not on my watch" in worker.seen("outcome not written", job=job_id)["error"]
    guarded.execute("drop trigger refuse on pgq.jobs")

    wait_until(guarded, "select status = 'done' from pgq.jobs where id = %s", job_id)
    wait_until(guarded, "select bool_and(trouble is null) from pgq.workers")


def test_a_locked_table_keeps_no_worker_from_beating(queue: Connection, fleet: Workers) -> None:
    worker = fleet.start(*APP, "--kind", "quick", "--poll", "0.1s")
    worker.seen("worker started")
    with queue.transaction():
        queue.execute("lock table pgq.jobs in access exclusive mode")
        wait_until(queue, "select bool_or(trouble is not null) from pgq.workers")
        trouble = jobs.value(queue, "select trouble from pgq.workers")
        jobs.enqueue(queue, "quick")

    wait_until(queue, "select bool_and(status = 'done') from pgq.jobs")
    assert trouble.startswith("claim has not worked for")
    assert jobs.value(queue, "select max(now() - beat_at) from pgq.workers") < timedelta(seconds=4)
