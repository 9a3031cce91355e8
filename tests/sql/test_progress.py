"""What a handler said of its progress is kept with its job, as long as the job is its own."""

import psycopg
import pytest

from pgq import db
from pgq.calls import jobs as calls
from pgq.calls.jobs import Progress
from pgq.errors import Conflict
from pgq.model import ClaimedJob, Failed
from tests.support import jobs
from tests.support.jobs import Connection


@pytest.fixture
def worker(conn: Connection) -> int:
    return jobs.register(conn)


def say(conn: Connection, job: ClaimedJob, fraction: float = 0.4) -> None:
    db.run(conn, calls.note_progress([Progress(job, f'{{"fraction": {fraction}}}')]))


def said(conn: Connection, job: ClaimedJob) -> object:
    return jobs.row(conn, job.id)["progress"]


def test_the_latest_word_of_each_job_is_kept(conn: Connection, worker: int) -> None:
    jobs.fill(conn, 2)
    one, two = jobs.claim(conn, worker)

    db.run(
        conn,
        calls.note_progress([Progress(two, '{"fraction": 1}'), Progress(one, '{"fraction": 0}')]),
    )
    say(conn, one, 0.7)

    assert (said(conn, one), said(conn, two)) == ({"fraction": 0.7}, {"fraction": 1})


def test_a_lost_lease_writes_nothing(conn: Connection, worker: int) -> None:
    jobs.enqueue(conn)
    lost = jobs.claim_one(conn, worker)
    jobs.requeue(conn, lost.id, force=True)
    before = jobs.row(conn, lost.id)

    say(conn, lost)
    assert jobs.row(conn, lost.id) == before

    again = jobs.claim_one(conn, worker)
    say(conn, lost)
    assert said(conn, again) is None


def test_a_job_that_has_ended_keeps_what_was_said_before(conn: Connection, worker: int) -> None:
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker)
    say(conn, job)
    jobs.finish(conn, worker, job)

    say(conn, job, 0.9)

    assert said(conn, job) == {"fraction": 0.4}


@pytest.mark.parametrize("attempts", [1, 3])
def test_the_next_attempt_begins_anew(conn: Connection, worker: int, attempts: int) -> None:
    job_id = jobs.enqueue(conn, max_attempts=3)
    # A job that lost a worker takes its last attempt by another way.
    conn.execute("update pgq.jobs set losses = 1, attempts = %s", (attempts - 1,))
    first = jobs.claim_one(conn, worker)
    say(conn, first)
    jobs.settle(conn, worker, Failed("no luck"), first)
    conn.execute(
        "update pgq.jobs set status = 'pending', finished_at = null, scheduled_at = now(),"
        " attempts = %s where id = %s",
        (attempts - 1, job_id),
    )
    assert said(conn, first) == {"fraction": 0.4}

    assert said(conn, jobs.claim_one(conn, worker)) is None


def test_requeue_forgets_it(conn: Connection, worker: int) -> None:
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker)
    say(conn, job)
    jobs.finish(conn, worker, job)

    jobs.requeue(conn, job.id)

    assert said(conn, job) is None


def test_a_row_that_is_locked_does_not_hold_a_heartbeat_up(shared: str) -> None:
    with (
        psycopg.connect(shared, autocommit=True) as beating,
        psycopg.connect(shared) as person,
    ):
        beating.execute("set statement_timeout = '5s'")
        jobs.fill(beating, 2)
        worker = jobs.register(beating)
        one, two = jobs.claim(beating, worker)
        person.execute("select 1 from pgq.jobs where id = %s for update", (one.id,))

        db.run(
            beating,
            calls.note_progress(
                [Progress(one, '{"fraction": 0.5}'), Progress(two, '{"fraction": 0.5}')]
            ),
        )

        assert (said(beating, one), said(beating, two)) == (None, {"fraction": 0.5})


def test_a_table_that_is_locked_does_not_either(shared: str) -> None:
    with (
        psycopg.connect(shared, autocommit=True) as beating,
        psycopg.connect(shared) as person,
    ):
        beating.execute("set statement_timeout = '5s'")
        jobs.fill(beating, 1)
        job = jobs.claim_one(beating, jobs.register(beating))
        person.execute("lock table pgq.jobs")

        with pytest.raises(Conflict, match="lock timeout"):
            say(beating, job)
