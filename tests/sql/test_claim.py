"""What a claim takes, in which order, and what it refuses."""

from datetime import timedelta

import psycopg
import pytest
from psycopg import IsolationLevel

from pgq.calls.jobs import Place
from pgq.errors import PgqError, WorkerDead
from pgq.model import Failed
from tests.support import jobs
from tests.support.jobs import Connection

HOUR = timedelta(hours=1)


def test_the_order_is_priority_then_time_due_then_arrival(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    late = jobs.enqueue(conn)
    low = jobs.enqueue(conn, priority=-32768)
    overdue = jobs.enqueue(conn, scheduled_at=jobs.now(conn) - HOUR)
    high = jobs.enqueue(conn, priority=32767)
    later = jobs.enqueue(conn)

    claimed = jobs.claim(conn, worker_id)

    assert [job.id for job in claimed] == [high, overdue, late, later, low]


def test_the_queues_are_looked_at_in_the_order_given(conn: Connection) -> None:
    worker_id = jobs.register(conn, "a", "b", "c")
    ids = {queue: jobs.enqueue(conn, queue=queue) for queue in ("a", "b", "c", "other")}
    jobs.enqueue(conn, queue="c", scheduled_at=jobs.now(conn) - HOUR)

    claimed = jobs.claim(conn, worker_id, 3, queues=("b", "a", "c"))

    assert [job.queue for job in claimed] == ["b", "a", "c"]
    assert jobs.row(conn, ids["other"])["status"] == "pending"


def test_a_job_that_is_not_due_waits(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn, delay=timedelta(seconds=1), priority=5)
    due = jobs.enqueue(conn)

    assert [job.id for job in jobs.claim(conn, worker_id)] == [due]


def test_a_kind_that_the_worker_does_not_know_waits(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn, "mail")
    resize = jobs.enqueue(conn, "resize")

    assert [job.id for job in jobs.claim(conn, worker_id, kinds=["resize", "pdf"])] == [resize]
    assert jobs.claim(conn, worker_id, kinds=[]) == []


def test_a_claim_fills_up_over_many_priorities(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    conn.execute(
        "insert into pgq.jobs (kind, priority)"
        " select 'work', i % 40 from generate_series(1, 200) as i"
    )

    first = jobs.claim(conn, worker_id, 150)
    second = jobs.claim(conn, worker_id, 150)

    assert (len(first), len(second)) == (150, 50)
    priorities = [job.priority for job in first + second]
    assert priorities == sorted(priorities, reverse=True)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_claim_for_nothing_takes_nothing(conn: Connection, limit: int) -> None:
    worker_id = jobs.register(conn)
    suspects(conn)
    jobs.enqueue(conn)

    assert jobs.claim(conn, worker_id, limit) == []


def test_a_claim_charges_the_attempt_and_says_who_has_it(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn, payload={"to": "ann@example.org"}, timeout=HOUR, max_attempts=7)

    job = jobs.claim_one(conn, worker_id)

    row = jobs.row(conn, job.id)
    assert (job.attempts, job.max_attempts, job.timeout) == (1, 7, HOUR)
    assert job.payload == {"to": "ann@example.org"}
    assert (row["status"], row["worker_id"], row["lease"]) == ("running", worker_id, job.lease)
    assert row["locked_at"] == jobs.now(conn)


def test_no_lease_is_given_twice(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.fill(conn, 100)
    leases = set[int]()
    for _ in range(5):
        claimed = jobs.claim(conn, worker_id)
        leases |= {job.lease for job in claimed}
        jobs.settle(conn, worker_id, Failed("again", delay=timedelta(0)), *claimed[:50])
        jobs.finish(conn, worker_id, *claimed[50:])
        jobs.requeue(conn, *[job.id for job in claimed])

    assert len(leases) == 500


def test_a_remembered_place_is_where_a_claim_starts(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.fill(conn, 10)
    first = jobs.claim(conn, worker_id, 4)
    jobs.requeue(conn, first[0].id, force=True)
    place = Place("default", 0, first[-1].scheduled_at, first[-1].id)

    second = jobs.claim(conn, worker_id, 4, places=[place])

    assert [job.id for job in second] == [first[-1].id + step for step in (1, 2, 3, 4)]


def test_remembered_places_are_looked_at_one_after_the_other(conn: Connection) -> None:
    worker_id = jobs.register(conn, "a", "b")
    expected = [
        jobs.enqueue(conn, queue="b", priority=1),
        jobs.enqueue(conn, queue="a", priority=9),
        jobs.enqueue(conn, queue="a", priority=3),
    ]
    jobs.enqueue(conn, queue="a", priority=7)
    long_ago = jobs.now(conn) - HOUR
    places = [
        Place(queue, priority, long_ago, 0) for queue, priority in (("b", 1), ("a", 9), ("a", 3))
    ]

    claimed = jobs.claim(conn, worker_id, places=places)

    assert [job.id for job in claimed] == expected


def test_a_place_behind_which_a_job_appeared_does_not_find_it(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn, scheduled_at=jobs.now(conn) - HOUR)
    here = Place("default", 0, jobs.now(conn), 0)

    assert jobs.claim(conn, worker_id, places=[here]) == []
    assert len(jobs.claim(conn, worker_id)) == 1


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def test_any_isolation_but_read_committed_is_refused(shared: str, level: IsolationLevel) -> None:
    with psycopg.connect(shared) as conn:
        conn.isolation_level = level
        worker_id = jobs.register(conn)
        with pytest.raises(PgqError, match="READ COMMITTED"):
            jobs.claim(conn, worker_id)


def test_a_worker_that_is_unknown_dead_or_gone_is_refused(conn: Connection) -> None:
    dead, gone = jobs.register(conn), jobs.register(conn)
    jobs.die(conn, dead)
    conn.execute("select pgq.stop_worker(%s)", (gone,))
    jobs.enqueue(conn)

    for worker_id in (dead, gone, gone + 1000):
        with pytest.raises(WorkerDead, match=f"worker {worker_id} "), conn.transaction():
            jobs.claim(conn, worker_id)


def suspects(conn: Connection, count: int = 1, *, max_attempts: int = 2) -> list[int]:
    """Jobs that lost a worker once and are due again."""
    ids = [jobs.enqueue(conn, max_attempts=max_attempts, priority=9) for _ in range(count)]
    doomed = jobs.register(conn)
    assert [job.id for job in jobs.claim(conn, doomed, count)] == ids
    jobs.die(conn, doomed)
    assert jobs.reap(conn) == dict.fromkeys(ids, "pending")
    return ids


def test_a_suspect_before_its_last_attempt_is_claimed_alone(conn: Connection) -> None:
    worker_id, other = jobs.register(conn), jobs.register(conn)
    first, second, third = suspects(conn, 3)
    harmless = jobs.enqueue(conn)

    assert [job.id for job in jobs.claim(conn, worker_id)] == [first, harmless]
    assert jobs.claim(conn, worker_id) == []
    (taken,) = jobs.claim(conn, other)
    assert taken.id == second
    jobs.finish(conn, other, taken)
    assert [job.id for job in jobs.claim(conn, other)] == [third]


def test_a_suspect_with_attempts_to_spare_is_claimed_like_any_other(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    ids = suspects(conn, 3, max_attempts=3)

    assert [job.id for job in jobs.claim(conn, worker_id)] == ids


def test_a_remembered_place_passes_a_suspect_by(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    suspects(conn)
    start = Place("default", 9, jobs.now(conn) - HOUR, 0)

    assert jobs.claim(conn, worker_id, places=[start]) == []


def test_idle_workers_take_turns_at_the_full_look(shared: str) -> None:
    with psycopg.connect(shared) as conn:
        first, second = jobs.register(conn), jobs.register(conn)
        hidden = jobs.enqueue(conn, priority=7)
        nowhere = [Place("default", 0, jobs.now(conn), 0)]

    with psycopg.connect(shared) as looking, psycopg.connect(shared) as other:
        assert jobs.claim(looking, first, kinds=["none"], places=nowhere, turn=True) == []
        assert jobs.claim(other, second, places=nowhere, turn=True) == []
        looking.rollback()
        assert [job.id for job in jobs.claim(other, second, places=nowhere, turn=True)] == [hidden]


def test_places_that_give_something_are_not_followed_by_a_full_look(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    hidden = jobs.enqueue(conn, priority=7)
    found = jobs.enqueue(conn)
    places = [Place("default", 0, jobs.now(conn) - HOUR, 0)]

    assert [job.id for job in jobs.claim(conn, worker_id, places=places, turn=True)] == [found]
    assert [job.id for job in jobs.claim(conn, worker_id, places=places, turn=True)] == [hidden]
