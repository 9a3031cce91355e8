"""A unique key under races: exactly one row, and every caller hears the truth."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event

import psycopg
import pytest
from psycopg import IsolationLevel

import pgq
from pgq.errors import Conflict
from pgq.model import Enqueued, NewJob
from tests.support import jobs
from tests.support.databases import wait_until_blocked
from tests.support.jobs import Connection

KEY = "order 7"


@pytest.fixture
def sessions(shared: str) -> Iterator[list[Connection]]:
    """Five sessions, each in a transaction of its own."""
    with ExitStack() as stack:
        yield [stack.enter_context(psycopg.connect(shared)) for _ in range(5)]


def rows(dsn: str) -> list[int]:
    with psycopg.connect(dsn) as conn:
        return [row["id"] for row in jobs.rows(conn, "select id from pgq.jobs order by id")]


def attempt(conn: Connection, *, keep: bool) -> Enqueued:
    """Enqueue the key; an insertion is committed or, as told, rolled back."""
    answer = pgq.enqueue(conn, "mail", unique_key=KEY)
    if keep:
        conn.commit()
    else:
        conn.rollback()
    return answer


def test_of_five_enqueuers_four_of_which_roll_back_exactly_one_row_stays(
    shared: str, sessions: list[Connection]
) -> None:
    holder, *others = sessions
    assert not pgq.enqueue(holder, "mail", unique_key=KEY).duplicate

    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(attempt, conn, keep=conn is sessions[-1]) for conn in others]
        for conn in others:
            wait_until_blocked(shared, conn.info.backend_pid)
        holder.rollback()
        answers = [future.result() for future in waiting]

    (kept,) = rows(shared)
    assert answers[-1] == Enqueued(kept)
    assert {answer.id for answer in answers if answer.duplicate} <= {kept}


def test_those_who_waited_for_a_commit_are_told_whose_key_it_is(
    shared: str, sessions: list[Connection]
) -> None:
    holder, *others = sessions
    kept = pgq.enqueue(holder, "mail", unique_key=KEY).id

    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(attempt, conn, keep=True) for conn in others]
        for conn in others:
            wait_until_blocked(shared, conn.info.backend_pid)
        holder.commit()
        answers = [future.result() for future in waiting]

    assert answers == [Enqueued(kept, duplicate=True)] * 4
    assert rows(shared) == [kept]


def test_a_key_that_its_holder_gives_up_meanwhile_goes_to_the_next(
    shared: str, sessions: list[Connection]
) -> None:
    holder, other = sessions[:2]
    pgq.enqueue(holder, "mail", unique_key=KEY)
    holder.commit()
    worker_id = jobs.register(holder)
    jobs.finish(holder, worker_id, jobs.claim_one(holder, worker_id))

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(attempt, other, keep=True)
        wait_until_blocked(shared, other.info.backend_pid)
        holder.commit()
        answer = waiting.result()

    assert not answer.duplicate
    assert rows(shared)[-1] == answer.id


@pytest.mark.parametrize(
    "enqueue",
    [
        lambda conn: pgq.enqueue(conn, "mail", unique_key=KEY),
        lambda conn: pgq.enqueue_many(conn, [NewJob("mail", unique_key=KEY)]),
    ],
    ids=["one", "many"],
)
def test_under_repeatable_read_a_key_taken_meanwhile_is_a_conflict(
    shared: str, sessions: list[Connection], enqueue: Callable[[Connection], object]
) -> None:
    early, late = sessions[:2]
    late.isolation_level = IsolationLevel.REPEATABLE_READ
    late.execute("select count(*) from pgq.jobs")
    kept = attempt(early, keep=True).id

    with pytest.raises(Conflict, match="run your transaction again") as told:
        enqueue(late)
    assert isinstance(told.value.__cause__, psycopg.errors.SerializationFailure)

    late.rollback()
    assert attempt(late, keep=True) == Enqueued(kept, duplicate=True)
    assert rows(shared) == [kept]


@pytest.mark.parametrize("outcome", ["commit", "rollback"])
def test_under_repeatable_read_who_waited_is_told_the_truth(
    shared: str, sessions: list[Connection], outcome: str
) -> None:
    holder, late = sessions[:2]
    late.isolation_level = IsolationLevel.REPEATABLE_READ
    pgq.enqueue(holder, "mail", unique_key=KEY)

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(attempt, late, keep=True)
        wait_until_blocked(shared, late.info.backend_pid)
        if outcome == "commit":
            holder.commit()
            with pytest.raises(Conflict):
                waiting.result()
        else:
            holder.rollback()
            assert not waiting.result().duplicate
    late.rollback()

    assert len(rows(shared)) == 1


def test_a_key_held_since_before_the_snapshot_is_a_duplicate_under_repeatable_read(
    sessions: list[Connection],
) -> None:
    early, late = sessions[:2]
    kept = attempt(early, keep=True).id
    late.isolation_level = IsolationLevel.REPEATABLE_READ

    assert attempt(late, keep=True) == Enqueued(kept, duplicate=True)


def load(dsn: str, keys: list[str]) -> int:
    """Enqueue the keys in one transaction; how many were new."""
    with psycopg.connect(dsn) as conn:
        answers = pgq.enqueue_many(conn, [NewJob("mail", unique_key=key) for key in keys])
        conn.commit()
        return sum(not answer.duplicate for answer in answers)


def test_bulks_with_the_same_keys_in_any_order_do_not_deadlock(shared: str) -> None:
    keys = [f"order {n}" for n in range(300)]
    orders = [keys, keys[::-1], keys[150:] + keys[:150], keys[::2] + keys[1::2]]

    with ThreadPoolExecutor(4) as threads:
        new = list(threads.map(load, [shared] * 4, orders))

    assert sum(new) == len(rows(shared)) == len(keys)


def keep_enqueuing(dsn: str) -> list[Enqueued]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        return [pgq.enqueue(conn, "mail", unique_key=KEY) for _ in range(400)]


def keep_finishing(dsn: str, over: Event) -> int:
    """Finish whatever there is, at once; how many."""
    finished = 0
    with psycopg.connect(dsn, autocommit=True) as conn:
        worker_id = jobs.register(conn)
        while True:
            last = over.is_set()
            claimed = jobs.claim(conn, worker_id)
            assert jobs.finish(conn, worker_id, *claimed) == []
            finished += len(claimed)
            if last and not claimed:
                return finished


def test_everybody_hears_of_a_job_while_the_key_changes_hands(shared: str) -> None:
    over = Event()
    with ThreadPoolExecutor(4) as threads:
        finishing = threads.submit(keep_finishing, shared, over)
        enqueuing = [threads.submit(keep_enqueuing, shared) for _ in range(3)]
        try:
            answers = [answer for future in enqueuing for answer in future.result()]
        finally:
            over.set()

    new = [answer.id for answer in answers if not answer.duplicate]
    assert sorted(new) == rows(shared)
    assert {answer.id for answer in answers} == set(new)
    assert finishing.result() == len(new) > 1


def test_a_requeue_waits_for_whoever_is_taking_the_key(
    shared: str, sessions: list[Connection]
) -> None:
    taker, operator = sessions[:2]
    old = attempt(taker, keep=True).id
    worker_id = jobs.register(taker)
    jobs.finish(taker, worker_id, jobs.claim_one(taker, worker_id))
    taker.commit()
    newer = pgq.enqueue(taker, "mail", unique_key=KEY).id

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(lambda: jobs.rows(operator, "select * from pgq.requeue(%s)", [old]))
        wait_until_blocked(shared, operator.info.backend_pid)
        taker.commit()
        answers = waiting.result()
    operator.commit()

    (answer,) = answers
    assert (answer["id"], answer["outcome"], answer["holder"]) == (old, "unique key taken", newer)
