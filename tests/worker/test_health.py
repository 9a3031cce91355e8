"""What of a worker cannot do its work is seen in its row, while the worker goes on."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest
from psycopg import sql

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
    worker = fleet.start(*APP, "--kind", "block the loop")
    job_id = jobs.enqueue(queue, "block the loop", payload={"seconds": 9})
    blocked = f"job {job_id} (block the loop) has blocked the event loop for "

    wait_until(queue, "select bool_or(starts_with(trouble, %s)) from pgq.workers", blocked)
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)
    wait_until(queue, "select bool_and(trouble is null) from pgq.workers")
    assert worker.seen("out of trouble")["level"] == "info"
    (told,) = worker.log("in trouble")
    assert told["level"] == "warning"
    assert told["trouble"].startswith(blocked)


def test_a_handler_is_not_blamed_for_a_stopped_process(queue: Connection, fleet: Workers) -> None:
    worker = fleet.hire(*APP, "--kind", "hold")
    worker.send(SIGSTOP)
    wait_until(queue, "select beat_at < now() - interval '5 s' from pgq.workers")
    worker.send(SIGCONT)
    wait_until(queue, "select beat_at > now() - interval '1 s' from pgq.workers")
    assert jobs.value(queue, "select trouble from pgq.workers") is None
    assert worker.log("in trouble") == []


def test_outcomes_that_the_database_refuses_are_seen_and_written_later(
    guarded: Connection, fleet: Workers
) -> None:
    worker = fleet.start(*APP, "--kind", "quick")
    job_id = jobs.enqueue(guarded, "quick")

    wait_until(
        guarded,
        "select bool_or(trouble = 'the database refuses the outcome of 1 job') from pgq.workers",
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
    assert worker.seen("in trouble")["trouble"].startswith("claim has not worked for")
    assert jobs.value(queue, "select max(now() - beat_at) from pgq.workers") < timedelta(seconds=4)


def test_jobs_that_do_not_stop_are_seen(queue: Connection, fleet: Workers, tmp_path: Path) -> None:
    fleet.hire(*APP, "--kind", "ignore all", "-c", "1")
    job_id = jobs.enqueue(queue, "ignore all", timeout=timedelta(seconds=0.1))

    wait_until(
        queue,
        "select bool_or(trouble = '1 job does not stop and keeps its slot: ' || %s)"
        " from pgq.workers",
        job_id,
    )
    (tmp_path / "go").touch()
    wait_until(queue, "select bool_and(trouble is null) from pgq.workers")


def test_a_word_of_progress_that_is_refused_keeps_nothing_else_back(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    refused, heard = (jobs.enqueue(queue, "tell of progress") for _ in range(2))
    queue.execute(
        sql.SQL(
            "create function public.refuse() returns trigger language plpgsql as"
            " $$ begin raise exception 'no'; end $$;"
            " create trigger refuse before update of progress on pgq.jobs for each row when"
            " (old.id = {} and new.progress is not null) execute function public.refuse()"
        ).format(refused)
    )
    try:
        worker = fleet.hire(*APP, "--kind", "tell of progress")
        worker.seen("progress not written", job=refused)
        wait_until(queue, "select progress is not null from pgq.jobs where id = %s", heard)
        dead = jobs.register(queue)
        orphan = jobs.enqueue(queue)
        jobs.claim(queue, dead, kinds=["work"])
        jobs.fall_silent(queue, dead, timedelta(minutes=5))
        wait_until(queue, "select status = 'pending' from pgq.jobs where id = %s", orphan)
    finally:
        (tmp_path / "go").touch()
        queue.execute("drop trigger refuse on pgq.jobs; drop function public.refuse")
