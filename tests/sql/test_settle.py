"""Settle: what becomes of an attempt that is not done, and when the job is due again."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from pgq.model import MAX_SNOOZES, Buried, Cancelled, Failed, HandedBack, Snoozed, Status
from pgq.text import MAX_DURATION
from tests.support import jobs
from tests.support.jobs import Connection

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
ATTEMPTS = [1, 2, 3, 11, 12, 13, 31, 32, 44, 53, 54, 63, 64, 1024, 32767, 32768, 2**31 - 1]


def failing(conn: Connection, **columns: int) -> tuple[int, int]:
    """A worker, and its running job whose row has these values."""
    worker_id = jobs.register(conn)
    job_id = jobs.enqueue(conn, max_attempts=1_000_000)
    for name, value in columns.items():
        conn.execute(f"update pgq.jobs set {name} = %s where id = %s".encode(), (value, job_id))
    return worker_id, job_id


@pytest.mark.parametrize("attempts", ATTEMPTS)
def test_the_default_backoff_is_safe_for_any_number_of_attempts(
    conn: Connection, attempts: int
) -> None:
    wait: timedelta = jobs.value(conn, "select pgq.backoff(%s::integer)", attempts)

    doubled = min(MINUTE * 2 ** min(attempts - 1, 30), DAY)
    assert doubled <= wait <= doubled * 1.1


@pytest.mark.parametrize("attempts", [0, -1, -(2**31), None])
def test_the_default_backoff_of_no_attempt_is_that_of_the_first(
    conn: Connection, attempts: int | None
) -> None:
    wait: timedelta = jobs.value(conn, "select pgq.backoff(%s::integer)", attempts)

    assert MINUTE <= wait <= MINUTE * 1.1


def test_the_default_backoff_is_jittered(conn: Connection) -> None:
    waits = conn.execute("select pgq.backoff(1) from generate_series(1, 50)").fetchall()

    assert len(set(waits)) > 25


@pytest.mark.parametrize("attempts", [1, 31, 44, 53, 1024, 32767, 999_999])
def test_a_job_that_failed_many_times_leaves_running_and_is_due_within_a_day(
    conn: Connection, attempts: int
) -> None:
    worker_id, job_id = failing(conn, attempts=attempts - 1)

    assert jobs.settle(conn, worker_id, Failed("again"), jobs.claim_one(conn, worker_id)) == []

    row = jobs.row(conn, job_id)
    assert (row["status"], row["attempts"]) == (Status.PENDING, attempts)
    assert MINUTE <= jobs.due_in(conn, job_id) <= DAY * 1.1


@pytest.mark.parametrize(
    ("delay", "expected"),
    [
        ("0 seconds", "0 seconds"),
        ("90 seconds", "90 seconds"),
        ("-1 day", "0 seconds"),
        ("-178000000 years", "0 seconds"),
        ("36500 days", "36500 days"),
        ("36500 days 1 second", "36500 days"),
        ("178000000 years", "36500 days"),
        ("2147483647 days", "36500 days"),
    ],
)
def test_no_delay_whatever_keeps_a_job_running(conn: Connection, delay: str, expected: str) -> None:
    worker_id, job_id = failing(conn)
    job = jobs.claim_one(conn, worker_id)

    lost = jobs.value(
        conn,
        "select pgq.settle(%s, array[%s::bigint], array[%s::bigint], array[1], array['failed'],"
        " array[%s::interval], array['again'], array[null])",
        *(worker_id, job.id, job.lease, delay),
    )

    assert lost == []
    assert jobs.row(conn, job_id)["status"] == Status.PENDING
    due: bool = jobs.value(
        conn,
        "select scheduled_at = now() + %s::interval from pgq.jobs where id = %s",
        expected,
        job_id,
    )
    assert due


def test_the_longest_duration_of_the_program_is_that_of_the_database(conn: Connection) -> None:
    assert jobs.value(conn, "select pgq.due_after('1000000 days') - now()") == MAX_DURATION


def test_a_failed_attempt_is_recorded_with_who_when_and_why(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)

    jobs.settle(conn, worker_id, Failed("no luck", "Traceback ...", delay=MINUTE), job)

    (attempt,) = jobs.attempts(conn, job.id)
    assert (attempt["attempt"], attempt["worker_id"], attempt["outcome"]) == (
        1,
        worker_id,
        "failed",
    )
    assert (attempt["error"], attempt["traceback"]) == ("no luck", "Traceback ...")
    assert attempt["started_at"] == attempt["finished_at"] == jobs.now(conn)
    assert jobs.row(conn, job.id)["last_error"] == "no luck"
    assert jobs.due_in(conn, job.id) == MINUTE
    assert jobs.counted(conn) == {"done": 0, "failed": 0, "retried": 1}


def test_a_job_fails_when_its_attempts_are_used_up(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    job_id = jobs.enqueue(conn, max_attempts=3)
    statuses = []
    for _ in range(3):
        again = Failed("no luck", delay=timedelta(0))
        jobs.settle(conn, worker_id, again, jobs.claim_one(conn, worker_id))
        statuses.append(jobs.row(conn, job_id)["status"])

    assert statuses == ["pending", "pending", "failed"]
    assert [attempt["attempt"] for attempt in jobs.attempts(conn, job_id)] == [1, 2, 3]
    assert jobs.counted(conn) == {"done": 0, "failed": 1, "retried": 2}
    assert jobs.claim(conn, worker_id) == []


def test_a_job_that_timed_out_is_retried_and_says_so(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)

    jobs.settle(conn, worker_id, Failed("ran for 2 s", timed_out=True), job)

    assert [attempt["outcome"] for attempt in jobs.attempts(conn, job.id)] == ["timed out"]
    assert jobs.row(conn, job.id)["status"] == Status.PENDING


def test_a_buried_job_fails_with_attempts_left(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn, max_attempts=10)
    job = jobs.claim_one(conn, worker_id)

    jobs.settle(conn, worker_id, Buried("no use"), job)

    row = jobs.row(conn, job.id)
    assert (row["status"], row["last_error"], row["attempts"]) == ("failed", "no use", 1)
    assert [attempt["outcome"] for attempt in jobs.attempts(conn, job.id)] == ["failed"]


def test_a_snoozed_job_is_not_charged(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)

    jobs.settle(conn, worker_id, Snoozed(MINUTE), job)

    row = jobs.row(conn, job.id)
    assert (row["status"], row["attempts"], row["snoozes"]) == ("pending", 0, 1)
    assert jobs.due_in(conn, job.id) == MINUTE
    assert jobs.attempts(conn, job.id) == []
    assert jobs.counted(conn) == {"done": 0, "failed": 0, "retried": 0}


def test_a_snooze_too_many_is_a_failed_attempt_with_the_reason(conn: Connection) -> None:
    worker_id, job_id = failing(conn, snoozes=MAX_SNOOZES - 1)
    jobs.settle(conn, worker_id, Snoozed(timedelta(0)), jobs.claim_one(conn, worker_id))
    assert jobs.row(conn, job_id)["attempts"] == 0

    jobs.settle(conn, worker_id, Snoozed(MINUTE), jobs.claim_one(conn, worker_id))

    row = jobs.row(conn, job_id)
    assert (row["status"], row["attempts"], row["snoozes"]) == ("pending", 1, MAX_SNOOZES)
    assert row["last_error"] == f"snoozed more than {MAX_SNOOZES} times"
    assert [attempt["outcome"] for attempt in jobs.attempts(conn, job_id)] == ["failed"]
    assert jobs.due_in(conn, job_id) == MINUTE


def test_a_job_handed_back_is_due_at_once_and_not_charged(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn, max_attempts=1)
    for _ in range(3):
        jobs.settle(conn, worker_id, HandedBack(), jobs.claim_one(conn, worker_id))

    assert jobs.claim_one(conn, worker_id).attempts == 1


def test_a_snooze_keeps_the_last_error(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    job_id = jobs.enqueue(conn)
    again = Failed("no luck", delay=timedelta(0))
    jobs.settle(conn, worker_id, again, jobs.claim_one(conn, worker_id))
    jobs.settle(conn, worker_id, Snoozed(MINUTE), jobs.claim_one(conn, worker_id))

    assert jobs.row(conn, job_id)["last_error"] == "no luck"


def test_a_handler_that_cancels_ends_its_job(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)

    jobs.settle(conn, worker_id, Cancelled("the order is gone"), job)

    row = jobs.row(conn, job.id)
    assert (row["status"], row["last_error"]) == ("cancelled", "the order is gone")
    assert row["finished_at"] == jobs.now(conn)
    assert [attempt["outcome"] for attempt in jobs.attempts(conn, job.id)] == ["cancelled"]


@pytest.mark.parametrize(
    ("verdict", "how"), [(HandedBack(), "handed back"), (Snoozed(MINUTE), "snoozed")]
)
@pytest.mark.parametrize(("ask", "word"), [(jobs.cancel, "cancelled"), (jobs.kill, "killed")])
def test_a_job_that_was_to_end_and_comes_back_unfinished_says_why_it_ended(
    conn: Connection,
    ask: Callable[[Connection, int], list[str]],
    word: str,
    verdict: HandedBack | Snoozed,
    how: str,
) -> None:
    worker_id = jobs.register(conn)
    job_id = jobs.enqueue(conn)
    again = Failed("no luck", delay=timedelta(0))
    jobs.settle(conn, worker_id, again, jobs.claim_one(conn, worker_id))
    job = jobs.claim_one(conn, worker_id)
    ask(conn, job_id)

    assert jobs.settle(conn, worker_id, verdict, job) == []

    why = f"{word} by an operator ({how})"
    row = jobs.row(conn, job_id)
    assert (row["status"], row["last_error"]) == ("cancelled", why)
    recorded = [
        (past["attempt"], past["outcome"], past["error"]) for past in jobs.attempts(conn, job_id)
    ]
    assert recorded == [(1, "failed", "no luck"), (2, "cancelled", why)]
    assert jobs.settle(conn, worker_id, verdict, job) == [], "sent again, it was applied"


@pytest.mark.parametrize("outcome", ["nonsense", "", None])
def test_an_outcome_that_does_not_exist_is_a_failed_attempt(
    conn: Connection, outcome: str | None
) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)

    jobs.value(
        conn,
        "select pgq.settle(%s, array[%s::bigint], array[%s::bigint], array[1], array[%s::text],"
        " array[null::interval], array[null], array[null])",
        *(worker_id, job.id, job.lease, outcome),
    )

    assert jobs.row(conn, job.id)["status"] == Status.PENDING
    assert [attempt["outcome"] for attempt in jobs.attempts(conn, job.id)] == ["failed"]


def test_a_batch_of_different_outcomes_is_settled_each_by_its_own(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.fill(conn, 4)
    first, second, third, fourth = jobs.claim(conn, worker_id)
    outcomes = ["failed", "buried", "snoozed", "handed back"]

    jobs.value(
        conn,
        "select pgq.settle(%s, %s::bigint[], %s::bigint[], %s::integer[], %s::text[],"
        " array_fill('1 hour'::interval, array[4]), %s::text[], array_fill(null::text, array[4]))",
        worker_id,
        [job.id for job in (fourth, third, second, first)],
        [job.lease for job in (fourth, third, second, first)],
        [1, 1, 1, 1],
        outcomes,
        ["four", "three", "two", "one"],
    )

    rows = [jobs.row(conn, job.id) for job in (first, second, third, fourth)]
    assert [row["status"] for row in rows] == ["pending", "pending", "failed", "pending"]
    assert [row["last_error"] for row in rows] == [None, None, "three", "four"]
    assert [row["attempts"] for row in rows] == [0, 0, 1, 1]
