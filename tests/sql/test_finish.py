"""Finish: done where the lease holds, counted once, and said so when it was lost."""

from datetime import timedelta

import pytest

from pgq import db
from pgq.calls import jobs as job_calls
from pgq.model import Buried, Cancelled, Done, Failed, HandedBack, Snoozed
from tests.support import jobs
from tests.support.jobs import Connection, Settlement

SETTLEMENTS: list[Settlement] = [
    Failed("no luck"),
    Failed("too slow", timed_out=True),
    Buried("no use"),
    Snoozed(timedelta(hours=1)),
    Cancelled("no need"),
    HandedBack(),
]


def test_a_finished_job_keeps_its_result_and_lets_go_of_its_lease(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)

    assert jobs.finish(conn, worker_id, job, verdict=Done('{"sent": true}')) == []

    row = jobs.row(conn, job.id)
    assert (row["status"], row["lease"], row["result"]) == ("done", None, {"sent": True})
    assert row["finished_at"] == jobs.now(conn)
    assert row["attempts"] == 1
    assert jobs.attempts(conn, job.id) == []


def test_results_and_notes_stay_with_their_jobs(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.fill(conn, 3)
    first, second, third = jobs.claim(conn, worker_id)
    verdicts = [(third, Done("3")), (first, Done(note="too big")), (second, Done())]

    assert db.run(conn, job_calls.finish(worker_id, verdicts)) == []

    kept = [jobs.row(conn, job.id) for job in (first, second, third)]
    assert [row["result"] for row in kept] == [None, None, 3]
    assert [row["last_error"] for row in kept] == ["too big", None, None]


def test_a_result_of_null_is_not_the_same_as_none(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)

    jobs.finish(conn, worker_id, job, verdict=Done("null"))

    assert jobs.value(conn, "select result = 'null'::jsonb from pgq.jobs where id = %s", job.id)


def test_a_lost_lease_cannot_finish(conn: Connection) -> None:
    worker_id, other = jobs.register(conn), jobs.register(conn)
    jobs.enqueue(conn)
    lost = jobs.claim_one(conn, worker_id)
    jobs.requeue(conn, lost.id, force=True)
    held = jobs.claim_one(conn, other)
    before = jobs.row(conn, lost.id)

    assert jobs.finish(conn, worker_id, lost, verdict=Done('"late"')) == [lost.id]

    assert jobs.row(conn, lost.id) == before
    assert jobs.counted(conn)["done"] == 0
    assert jobs.finish(conn, other, held) == []


@pytest.mark.parametrize("verdict", SETTLEMENTS, ids=lambda verdict: type(verdict).__name__)
def test_a_lost_lease_cannot_settle(conn: Connection, verdict: Settlement) -> None:
    worker_id, other = jobs.register(conn), jobs.register(conn)
    jobs.enqueue(conn)
    lost = jobs.claim_one(conn, worker_id)
    jobs.requeue(conn, lost.id, force=True)
    jobs.claim_one(conn, other)
    before, recorded = jobs.row(conn, lost.id), jobs.attempts(conn, lost.id)

    assert jobs.settle(conn, worker_id, verdict, lost) == [lost.id]

    assert jobs.row(conn, lost.id) == before
    assert jobs.attempts(conn, lost.id) == recorded
    assert jobs.counted(conn) == {"done": 0, "failed": 0, "retried": 0}


@pytest.mark.parametrize("back", ["reaped", "requeued"])
def test_a_worker_that_lost_a_job_hears_it_even_before_another_claims(
    conn: Connection, back: str
) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    lost = jobs.claim_one(conn, worker_id)
    if back == "reaped":
        jobs.die(conn, worker_id)
        assert jobs.reap(conn) == {lost.id: "pending"}
    else:
        assert jobs.requeue(conn, lost.id, force=True) == ["requeued"]
    before = jobs.row(conn, lost.id)

    assert jobs.finish(conn, worker_id, lost) == [lost.id]
    for verdict in SETTLEMENTS:
        assert jobs.settle(conn, worker_id, verdict, lost) == [lost.id]

    assert jobs.row(conn, lost.id) == before


def test_a_worker_whose_last_attempt_was_reaped_hears_it(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn, max_attempts=1)
    lost = jobs.claim_one(conn, worker_id)
    jobs.die(conn, worker_id)
    assert jobs.reap(conn) == {lost.id: "failed"}

    assert jobs.finish(conn, worker_id, lost) == [lost.id]
    assert jobs.settle(conn, worker_id, Failed("late"), lost) == [lost.id]


def test_a_finish_sent_again_counts_once(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.fill(conn, 5)
    claimed = jobs.claim(conn, worker_id)
    assert jobs.finish(conn, worker_id, *claimed) == []
    before = [jobs.row(conn, job.id) for job in claimed]

    assert jobs.finish(conn, worker_id, *claimed, verdict=Done("1")) == []

    assert [jobs.row(conn, job.id) for job in claimed] == before
    assert jobs.counted(conn) == {"done": 5, "failed": 0, "retried": 0}


@pytest.mark.parametrize("verdict", SETTLEMENTS, ids=lambda verdict: type(verdict).__name__)
def test_a_settlement_sent_again_counts_once(conn: Connection, verdict: Settlement) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)
    assert jobs.settle(conn, worker_id, verdict, job) == []
    before = jobs.row(conn, job.id)
    counted, recorded = jobs.counted(conn), jobs.attempts(conn, job.id)

    assert jobs.settle(conn, worker_id, verdict, job) == []

    assert jobs.row(conn, job.id) == before
    assert jobs.counted(conn) == counted
    assert jobs.attempts(conn, job.id) == recorded


def test_a_finish_sent_again_after_a_requeue_is_lost(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)
    jobs.finish(conn, worker_id, job)
    jobs.requeue(conn, job.id)

    assert jobs.finish(conn, worker_id, job) == [job.id]
    assert jobs.row(conn, job.id)["status"] == "pending"


def test_of_one_batch_only_the_lost_are_named(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.fill(conn, 6)
    claimed = jobs.claim(conn, worker_id)
    jobs.finish(conn, worker_id, claimed[0])
    jobs.requeue(conn, claimed[2].id, claimed[4].id, force=True)

    lost = jobs.finish(conn, worker_id, *reversed(claimed))

    assert sorted(lost) == [claimed[2].id, claimed[4].id]
    assert jobs.counted(conn)["done"] == 4


def test_a_job_twice_in_one_batch_counts_once(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)

    assert jobs.finish(conn, worker_id, job, job) == []
    assert jobs.counted(conn)["done"] == 1


def test_another_worker_with_the_lease_of_a_finished_job_is_told_it_lost(conn: Connection) -> None:
    worker_id, other = jobs.register(conn), jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)
    jobs.finish(conn, worker_id, job)

    assert jobs.finish(conn, other, job) == [job.id]


@pytest.mark.parametrize("lease", [-(2**63), -1, 0, 2**63 - 1])
def test_any_signed_64_bit_number_is_a_lease(conn: Connection, lease: int) -> None:
    worker_id = jobs.register(conn)
    jobs.fill(conn, 2)
    done, failed = (job._replace(lease=lease) for job in jobs.claim(conn, worker_id))
    conn.execute("update pgq.jobs set lease = %s", (lease,))

    assert jobs.finish(conn, worker_id, done) == []
    assert jobs.settle(conn, worker_id, Failed("no luck"), failed) == []


def test_an_empty_batch_is_nothing(conn: Connection) -> None:
    worker_id = jobs.register(conn)

    assert jobs.finish(conn, worker_id) == []
    assert jobs.settle(conn, worker_id, Failed("no luck")) == []


def test_the_histograms_count_each_done_job_once(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.fill(conn, 3)
    claimed = jobs.claim(conn, worker_id)
    conn.execute("update pgq.jobs set scheduled_at = now() - interval '3 ms'")
    conn.execute("update pgq.jobs set locked_at = now() - interval '19 hours'")
    jobs.finish(conn, worker_id, *claimed[:2])
    conn.execute("update pgq.jobs set locked_at = now()")
    jobs.finish(conn, worker_id, claimed[2])

    (totals,) = jobs.rows(conn, "select wait_histogram, run_histogram from pgq.throughput")

    # A wait below 1 ms (a negative one too) is in the first slot, one of 2 to 4 ms in the third,
    # and a run of more than 18 hours in the last.
    assert {i: n for i, n in enumerate(totals["wait_histogram"], 1) if n} == {1: 2, 3: 1}
    assert {i: n for i, n in enumerate(totals["run_histogram"], 1) if n} == {28: 2, 1: 1}
