"""A unique key: at most one unfinished job has it, and everybody is told who."""

from datetime import timedelta

import pytest

import pgq
from pgq.model import Buried, Cancelled, Failed, NewJob, Snoozed
from tests.support import jobs
from tests.support.jobs import Connection


def holders(conn: Connection, key: str) -> list[int]:
    found = jobs.rows(
        conn,
        "select id from pgq.jobs where unique_key = %s and status in ('pending', 'running')",
        key,
    )
    return [row["id"] for row in found]


def test_a_taken_key_answers_with_its_holder(conn: Connection) -> None:
    first = pgq.enqueue(conn, "mail", unique_key="order 7")
    second = pgq.enqueue(conn, "other", queue="elsewhere", unique_key="order 7")

    assert not first.duplicate
    assert second == pgq.Enqueued(first.id, duplicate=True)
    assert jobs.value(conn, "select count(*) from pgq.jobs") == 1


def test_a_key_is_held_until_its_job_has_ended(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    held = pgq.enqueue(conn, "mail", unique_key="k").id
    for verdict in (Failed("again", delay=timedelta(0)), Snoozed(timedelta(0))):
        job = jobs.claim_one(conn, worker_id)
        assert pgq.enqueue(conn, "mail", unique_key="k").id == held
        jobs.settle(conn, worker_id, verdict, job)
        assert pgq.enqueue(conn, "mail", unique_key="k").id == held

    jobs.finish(conn, worker_id, jobs.claim_one(conn, worker_id))

    assert not pgq.enqueue(conn, "mail", unique_key="k").duplicate


@pytest.mark.parametrize("verdict", [Buried("no use"), Cancelled("no need")])
def test_a_failed_or_cancelled_job_lets_go_of_its_key(
    conn: Connection, verdict: Buried | Cancelled
) -> None:
    worker_id = jobs.register(conn)
    pgq.enqueue(conn, "mail", unique_key="k")
    jobs.settle(conn, worker_id, verdict, jobs.claim_one(conn, worker_id))

    assert not pgq.enqueue(conn, "mail", unique_key="k").duplicate


def test_a_bulk_answers_for_each_job_in_order(conn: Connection) -> None:
    outside = pgq.enqueue(conn, "mail", unique_key="b").id
    answers = pgq.enqueue_many(
        conn,
        [
            NewJob("mail", unique_key="c"),
            NewJob("mail"),
            NewJob("mail", unique_key="b"),
            NewJob("mail", unique_key="a"),
            NewJob("mail", unique_key="c"),
            NewJob("mail"),
        ],
    )

    assert [answer.duplicate for answer in answers] == [False, False, True, False, True, False]
    assert answers[2].id == outside
    assert answers[4].id == answers[0].id
    assert len({answer.id for answer in answers}) == 5
    assert jobs.value(conn, "select count(*) from pgq.jobs") == 5
    for key, position in (("a", 3), ("b", 2), ("c", 0)):
        assert holders(conn, key) == [answers[position].id]


def test_a_bulk_of_known_jobs_adds_nothing(conn: Connection) -> None:
    bulk = [NewJob("mail", {"n": n}, unique_key=f"order {n}") for n in range(500)]
    first = pgq.enqueue_many(conn, bulk)

    second = pgq.enqueue_many(conn, reversed(bulk))

    assert all(answer.duplicate for answer in second)
    assert [answer.id for answer in reversed(second)] == [answer.id for answer in first]


def test_a_key_may_be_long_and_of_any_script(conn: Connection) -> None:
    key = "🔑" * 500
    assert pgq.enqueue(conn, "k" * 200, queue="好" * 200, unique_key=key).id
    assert pgq.enqueue(conn, "mail", unique_key=key).duplicate


def dead_letters(conn: Connection, keys: list[str | None]) -> list[int]:
    """Failed jobs that had these keys."""
    worker_id = jobs.register(conn)
    ids = [pgq.enqueue(conn, "mail", unique_key=key).id for key in keys]
    jobs.settle(conn, worker_id, Buried("no use"), *jobs.claim(conn, worker_id))
    return ids


def test_a_requeue_into_a_taken_key_leaves_that_job_and_sends_the_others(
    conn: Connection,
) -> None:
    ids = dead_letters(conn, [f"key {n}" for n in range(21)])
    newer = pgq.enqueue(conn, "mail", unique_key="key 13").id
    before = jobs.row(conn, ids[13])

    answers = jobs.rows(conn, "select * from pgq.requeue(%s)", ids)

    taken = [answer for answer in answers if answer["outcome"] != "requeued"]
    assert taken == [
        {"id": ids[13], "outcome": "unique key taken", "holder": newer, "worker_id": None}
    ]
    assert jobs.row(conn, ids[13]) == before
    assert {jobs.row(conn, job_id)["status"] for job_id in ids if job_id != ids[13]} == {"pending"}
    (audit,) = jobs.rows(conn, "select * from pgq.audit")
    assert (audit["action"], audit["changed"]) == ("requeue", 20)


def test_of_two_dead_letters_with_one_key_the_first_goes_back(conn: Connection) -> None:
    (first,) = dead_letters(conn, ["k"])
    (second,) = dead_letters(conn, ["k"])

    assert jobs.requeue(conn, second, first) == ["requeued", "unique key taken"]
    assert holders(conn, "k") == [first]


def test_a_reap_never_meets_a_taken_key(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    ids = [pgq.enqueue(conn, "mail", unique_key=f"key {n}").id for n in range(21)]
    jobs.claim(conn, worker_id)
    assert pgq.enqueue(conn, "mail", unique_key="key 13").duplicate
    jobs.die(conn, worker_id)

    assert jobs.reap(conn) == dict.fromkeys(ids, "pending")
