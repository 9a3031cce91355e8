"""Who is dead, who is not, and what becomes of the jobs of the dead."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest

from pgq.model import Failed
from tests.support import jobs
from tests.support.jobs import Connection

LOCK = -(2**62) + 4711
JUST_SILENT = timedelta(seconds=5)
SECOND = timedelta(seconds=1)


@contextmanager
def holding(dsn: str, lock_key: int) -> Iterator[Connection]:
    """The heartbeat connection of a worker that lives."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select pg_advisory_lock(%s)", (lock_key,))
        yield conn


def silent_worker(
    conn: Connection, *, lock_key: int | None, silence: timedelta, queue: str = "default"
) -> tuple[int, int]:
    """A worker that has been silent for so long, and the job it was running."""
    worker_id = jobs.register(conn, queue, lock_key=lock_key)
    jobs.enqueue(conn, queue=queue)
    (job,) = jobs.claim(conn, worker_id, 1, queues=[queue])
    jobs.fall_silent(conn, worker_id, silence)
    return worker_id, job.id


def is_dead(conn: Connection, worker_id: int) -> bool:
    dead: bool = jobs.value(
        conn, "select died_at is not null from pgq.workers where id = %s", worker_id
    )
    return dead


def test_a_worker_whose_lock_is_gone_is_dead_after_four_seconds(elder: Connection) -> None:
    worker_id, job_id = silent_worker(elder, lock_key=LOCK, silence=JUST_SILENT)

    assert jobs.reap(elder) == {job_id: "pending"}

    assert is_dead(elder, worker_id)
    assert jobs.due_in(elder, job_id) <= timedelta(0)


def test_a_worker_whose_lock_is_gone_may_be_silent_for_less(elder: Connection) -> None:
    worker_id, _ = silent_worker(elder, lock_key=LOCK, silence=3 * SECOND)

    assert jobs.reap(elder) == {}
    assert not is_dead(elder, worker_id)


def test_a_silent_worker_whose_lock_is_held_lives(elder: Connection, shared: str) -> None:
    worker_id, _ = silent_worker(elder, lock_key=LOCK, silence=55 * SECOND)

    with holding(shared, LOCK):
        assert jobs.reap(elder) == {}
        assert not is_dead(elder, worker_id)


def test_a_worker_silent_for_the_visibility_timeout_is_dead_whatever_its_lock(
    elder: Connection, shared: str
) -> None:
    worker_id, job_id = silent_worker(elder, lock_key=LOCK, silence=61 * SECOND)

    with holding(shared, LOCK):
        assert jobs.reap(elder) == {job_id: "pending"}
        assert is_dead(elder, worker_id)


def test_a_worker_without_a_lock_is_judged_by_the_visibility_timeout_alone(
    elder: Connection,
) -> None:
    silent_worker(elder, lock_key=None, silence=55 * SECOND)
    _, job_id = silent_worker(elder, lock_key=None, silence=61 * SECOND)

    assert jobs.reap(elder) == {job_id: "pending"}


def test_the_visibility_timeout_is_the_longest_of_the_workers_queues(elder: Connection) -> None:
    worker_id = jobs.register(elder, "quick", "slow")
    timeouts = {"quick": 10 * SECOND, "slow": 120 * SECOND}
    for queue, timeout in timeouts.items():
        elder.execute(
            "update pgq.queues set visibility_timeout = %s where queue = %s", (timeout, queue)
        )

    jobs.fall_silent(elder, worker_id, 119 * SECOND)
    jobs.reap(elder)
    assert not is_dead(elder, worker_id)

    jobs.fall_silent(elder, worker_id, 121 * SECOND)
    jobs.reap(elder)
    assert is_dead(elder, worker_id)


def test_a_session_younger_than_five_seconds_declares_nobody_dead(
    elder: Connection, shared: str
) -> None:
    worker_id, job_id = silent_worker(elder, lock_key=LOCK, silence=timedelta(days=1))

    with psycopg.connect(shared, autocommit=True) as young:
        reaped = jobs.reap(young)
        age: timedelta = jobs.value(young, "select pgq.session_age()")
    assert age < 5 * SECOND
    assert reaped == {}
    assert not is_dead(elder, worker_id)
    assert jobs.reap(elder) == {job_id: "pending"}


def test_a_worker_does_not_take_itself_for_dead(elder: Connection) -> None:
    worker_id, _ = silent_worker(elder, lock_key=LOCK, silence=JUST_SILENT)
    elder.execute("select pg_advisory_lock(%s)", (LOCK,))
    try:
        assert jobs.reap(elder) == {}
        assert not is_dead(elder, worker_id)
    finally:
        elder.execute("select pg_advisory_unlock(%s)", (LOCK,))


def test_a_worker_that_beats_while_it_is_judged_lives(elder: Connection, shared: str) -> None:
    worker_id, _ = silent_worker(elder, lock_key=LOCK, silence=JUST_SILENT)

    with psycopg.connect(shared) as beating:
        beating.execute("select * from pgq.heartbeat(%s, %s)", (worker_id, LOCK))
        assert jobs.reap(elder) == {}
        beating.commit()

    assert not is_dead(elder, worker_id)


def test_a_beat_of_a_dead_worker_changes_nothing_and_tells_it(elder: Connection) -> None:
    worker_id, _ = silent_worker(elder, lock_key=LOCK, silence=JUST_SILENT)
    jobs.reap(elder)
    before = jobs.rows(elder, "select * from pgq.workers")

    assert not jobs.value(elder, "select alive from pgq.heartbeat(%s, %s)", worker_id, LOCK)

    assert jobs.rows(elder, "select * from pgq.workers") == before


def test_a_dead_worker_waits_for_no_job(elder: Connection) -> None:
    worker_id, _ = silent_worker(elder, lock_key=LOCK, silence=JUST_SILENT)
    elder.execute("select pgq.set_waiting(%s, true)", (worker_id,))

    jobs.reap(elder)

    assert not jobs.value(elder, "select waiting from pgq.workers")
    elder.execute("select pgq.set_waiting(%s, true)", (worker_id,))
    assert not jobs.value(elder, "select waiting from pgq.workers")


def test_a_job_that_is_being_finished_is_left_to_its_finish(elder: Connection, shared: str) -> None:
    worker_id = jobs.register(elder, lock_key=LOCK)
    jobs.fill(elder, 2)
    first, second = jobs.claim(elder, worker_id)
    jobs.fall_silent(elder, worker_id)

    with psycopg.connect(shared) as finishing:
        finishing.execute("select from pgq.jobs where id = %s for update", (first.id,))
        assert jobs.reap(elder) == {second.id: "pending"}
        assert jobs.finish(finishing, worker_id, first) == []

    assert jobs.row(elder, first.id)["status"] == "done"
    assert jobs.reap(elder) == {}


@pytest.mark.parametrize("owner", ["unknown", "stopped", "dead"])
def test_a_job_left_running_without_an_owner_goes_back(conn: Connection, owner: str) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)
    match owner:
        case "unknown":
            conn.execute("delete from pgq.workers where id = %s", (worker_id,))
        case "stopped":
            conn.execute("select pgq.stop_worker(%s)", (worker_id,))
        case _:
            jobs.die(conn, worker_id)

    assert jobs.reap(conn) == {job.id: "pending"}

    (attempt,) = jobs.attempts(conn, job.id)
    assert (attempt["outcome"], attempt["worker_id"], attempt["attempt"]) == ("lost", worker_id, 1)
    assert f"worker lost: w-{worker_id}" in attempt["error"]


def test_a_job_without_any_worker_goes_back(conn: Connection) -> None:
    job_id = jobs.enqueue(conn)
    conn.execute("update pgq.jobs set status = 'running', lease = 1")

    assert jobs.reap(conn) == {job_id: "pending"}
    assert jobs.row(conn, job_id)["last_error"] == "worker lost"


def test_the_jobs_of_the_living_stay(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)

    assert jobs.reap(conn) == {}
    assert jobs.finish(conn, worker_id, job) == []


def lose(conn: Connection, job_id: int) -> str:
    """Claim a job with a worker that dies of it; what becomes of the job."""
    doomed = jobs.register(conn)
    assert jobs.claim_one(conn, doomed).id == job_id
    jobs.die(conn, doomed)
    return jobs.reap(conn)[job_id]


def test_the_first_loss_is_due_at_once_and_later_ones_wait(conn: Connection) -> None:
    job_id = jobs.enqueue(conn, max_attempts=4)

    assert lose(conn, job_id) == "pending"
    assert jobs.due_in(conn, job_id) == timedelta(0)
    assert lose(conn, job_id) == "pending"
    assert timedelta(minutes=2) <= jobs.due_in(conn, job_id) <= timedelta(minutes=2.2)


def test_a_job_that_kills_its_workers_fails_when_its_attempts_are_used_up(
    conn: Connection,
) -> None:
    job_id = jobs.enqueue(conn, max_attempts=3)
    outcomes = []
    for _ in range(3):
        conn.execute("update pgq.jobs set scheduled_at = now()")
        outcomes.append(lose(conn, job_id))

    row = jobs.row(conn, job_id)
    assert outcomes == ["pending", "pending", "failed"]
    assert (row["attempts"], row["losses"], row["lease"]) == (3, 3, None)
    assert row["last_error"].startswith("worker lost: w-")
    assert [attempt["outcome"] for attempt in jobs.attempts(conn, job_id)] == ["lost"] * 3
    assert jobs.counted(conn) == {"done": 0, "failed": 1, "retried": 2}


def test_harmless_jobs_beside_a_deadly_one_are_charged_for_one_death_and_end_done(
    conn: Connection,
) -> None:
    deadly = jobs.enqueue(conn, max_attempts=2)
    harmless = [jobs.enqueue(conn, max_attempts=2) for _ in range(20)]
    doomed = jobs.register(conn)
    assert len(jobs.claim(conn, doomed)) == 21
    jobs.die(conn, doomed)
    assert set(jobs.reap(conn).values()) == {"pending"}

    for _ in range(21):
        worker_id = jobs.register(conn)
        (job,) = jobs.claim(conn, worker_id)
        if job.id == deadly:
            jobs.die(conn, worker_id)
            assert jobs.reap(conn) == {deadly: "failed"}
        else:
            jobs.finish(conn, worker_id, job)

    assert {jobs.row(conn, job_id)["status"] for job_id in harmless} == {"done"}
    assert jobs.row(conn, deadly)["status"] == "failed"


def test_a_lost_job_that_was_asked_to_cancel_ends_cancelled(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    job_id = jobs.enqueue(conn)
    jobs.claim_one(conn, worker_id)
    jobs.cancel(conn, job_id)
    jobs.die(conn, worker_id)

    assert jobs.reap(conn) == {job_id: "cancelled"}


def test_a_reap_gives_back_no_more_than_told(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.fill(conn, 5)
    jobs.claim(conn, worker_id)
    jobs.die(conn, worker_id)

    assert [len(jobs.reap(conn, 2)) for _ in range(4)] == [2, 2, 1, 0]


def test_a_failed_attempt_after_a_loss_is_retried_as_usual(conn: Connection) -> None:
    job_id = jobs.enqueue(conn)
    lose(conn, job_id)
    worker_id = jobs.register(conn)

    jobs.settle(conn, worker_id, Failed("no luck"), jobs.claim_one(conn, worker_id))

    row = jobs.row(conn, job_id)
    assert (row["status"], row["attempts"], row["losses"]) == ("pending", 2, 1)
