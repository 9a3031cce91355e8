"""The client: enqueue in the caller's own transaction, sync and async, and wait for a result."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

import pgq
from pgq import client
from pgq.errors import (
    JobCancelled,
    JobFailed,
    JobNotFound,
    PayloadError,
    ResultDropped,
    UsageError,
    WaitTimeout,
)
from pgq.model import Buried, Cancelled, Done, Failed, NewJob
from tests.support import jobs
from tests.support.jobs import Connection

BRIEFLY = timedelta(milliseconds=30)
LONG = timedelta(seconds=20)


@pytest.fixture
def committing(shared: str) -> Iterator[Connection]:
    with psycopg.connect(shared, autocommit=True) as conn:
        yield conn


def test_a_job_lives_and_dies_with_the_callers_transaction(committing: Connection) -> None:
    with committing.transaction(force_rollback=True):
        pgq.enqueue(committing, "mail")
    kept = pgq.enqueue(committing, "mail")

    ids = [row["id"] for row in jobs.rows(committing, "select id from pgq.jobs")]
    assert ids == [kept.id]


async def test_async_connections_do_the_same(shared: str) -> None:
    async with await psycopg.AsyncConnection.connect(shared) as conn:
        lost = await pgq.enqueue(conn, "mail", {"n": 1})
        await conn.rollback()
        kept = await pgq.enqueue(conn, "mail", {"n": 2}, unique_key="k", delay=timedelta(hours=1))
        again = await pgq.enqueue(conn, "mail", unique_key="k")
        many = await pgq.enqueue_many(conn, [NewJob("mail"), NewJob("mail", unique_key="k")])
        await conn.commit()

    with psycopg.connect(shared) as conn:
        ids = [row["id"] for row in jobs.rows(conn, "select id from pgq.jobs order by id")]
    assert lost.id not in ids
    assert again == pgq.Enqueued(kept.id, duplicate=True)
    assert many[1] == again
    assert ids == [kept.id, many[0].id]


async def test_an_async_caller_waits_for_a_result(shared: str) -> None:
    async with await psycopg.AsyncConnection.connect(shared, autocommit=True) as conn:
        job = await pgq.enqueue(conn, "mail")
        waiting = asyncio.create_task(awaited(conn, job.id))
        await asyncio.to_thread(end, shared, Done('{"sent": 1}'))
        assert await waiting == {"sent": 1}


async def awaited(conn: psycopg.AsyncConnection, job_id: int) -> object:
    result: object = await pgq.wait(conn, job_id, timeout=LONG)
    return result


def end(dsn: str, verdict: Done | Failed | Buried | Cancelled) -> None:
    """Claim the only job and end it, as a worker does."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        worker_id = jobs.register(conn)
        job = jobs.claim_one(conn, worker_id)
        if isinstance(verdict, Done):
            jobs.finish(conn, worker_id, job, verdict=verdict)
        else:
            jobs.settle(conn, worker_id, verdict, job)


def test_a_caller_waits_until_a_worker_is_done(committing: Connection, shared: str) -> None:
    job = pgq.enqueue(committing, "mail")
    worker = threading.Thread(target=end, args=(shared, Done("[1, 2]")))
    worker.start()

    assert pgq.wait(committing, job.id, timeout=LONG) == [1, 2]
    worker.join()


def test_a_caller_that_is_not_in_autocommit_sees_what_others_commit(shared: str) -> None:
    with psycopg.connect(shared) as conn:
        job = pgq.enqueue(conn, "mail")
        conn.commit()
        worker = threading.Thread(target=end, args=(shared, Done()))
        worker.start()

        assert pgq.wait(conn, job.id, timeout=LONG) is None
        worker.join()


def test_each_way_to_end_is_told(committing: Connection, shared: str) -> None:
    failed = pgq.enqueue(committing, "mail").id
    end(shared, Buried("no such address\x1b[2J"))
    cancelled = pgq.enqueue(committing, "mail").id
    end(shared, Cancelled("no need"))
    dropped = pgq.enqueue(committing, "mail").id
    end(shared, Done(note="the result is too large"))

    with pytest.raises(JobFailed, match=rf"job {failed} failed: no such address\\x1b\[2J"):
        pgq.wait(committing, failed)
    with pytest.raises(JobCancelled):
        pgq.wait(committing, cancelled)
    with pytest.raises(ResultDropped, match="the result is too large"):
        pgq.wait(committing, dropped)
    with pytest.raises(JobNotFound):
        pgq.wait(committing, dropped + 1000)


def test_a_wait_ends_at_its_timeout_and_the_job_goes_on(committing: Connection) -> None:
    job = pgq.enqueue(committing, "mail")

    with pytest.raises(WaitTimeout, match="is still pending"):
        pgq.wait(committing, job.id, timeout=BRIEFLY)
    with pytest.raises(WaitTimeout):
        pgq.wait(committing, job.id, timeout=timedelta(0))

    assert jobs.row(committing, job.id)["status"] == "pending"


def test_a_wait_in_the_transaction_that_enqueued_is_refused(conn: Connection) -> None:
    job = pgq.enqueue(conn, "mail")

    with pytest.raises(UsageError, match="commit first"):
        pgq.wait(conn, job.id)


def test_a_bulk_of_several_statements_answers_in_order(conn: Connection) -> None:
    bulk = [NewJob("mail", {"n": n}) for n in range(client.BATCH + 10)]

    answers = pgq.enqueue_many(conn, iter(bulk))

    numbers = dict(conn.execute("select id, (payload->>'n')::integer from pgq.jobs").fetchall())
    assert [numbers[answer.id] for answer in answers] == list(range(client.BATCH + 10))


def test_a_bulk_names_the_position_of_the_job_that_cannot_be(conn: Connection) -> None:
    bulk = [NewJob("mail"), NewJob("mail", {"a": {"b": ["x", "nul\0"]}}), NewJob("mail")]

    with pytest.raises(UsageError, match=r"^job 1: payload: a NUL character .* at \$\.a\.b\[1\]$"):
        pgq.enqueue_many(conn, bulk)

    assert jobs.value(conn, "select count(*) from pgq.jobs") == 0


def test_nothing_is_sent_for_a_job_that_cannot_be(shared: str) -> None:
    with psycopg.connect(shared) as conn:
        with pytest.raises(UsageError):
            pgq.enqueue(conn, "mail", {"x": float("nan")})
        assert conn.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_a_payload_over_the_limit_is_refused_before_it_is_sent(conn: Connection) -> None:
    large = {"text": "x" * 1_048_576}

    with pytest.raises(PayloadError, match="this database allows 1048576"):
        pgq.enqueue(conn, "mail", large)
    with pytest.raises(UsageError, match=r"job 1: .* allows 1048576"):
        pgq.enqueue_many(conn, [NewJob("mail"), NewJob("mail", large)])
    assert conn.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS

    conn.execute("select set_config('pgq.max_payload_bytes', '3000000', true)")
    assert pgq.enqueue(conn, "mail", large).id


def test_a_payload_of_multi_byte_characters_is_measured_in_bytes(conn: Connection) -> None:
    with pytest.raises(PayloadError, match="bytes, and this database allows"):
        pgq.enqueue(conn, "mail", {"text": "é" * 600_000})


def test_a_connection_may_have_rows_and_cursors_of_its_own(shared: str) -> None:
    with psycopg.connect(shared, row_factory=dict_row, cursor_factory=psycopg.ClientCursor) as conn:
        first = pgq.enqueue(conn, "work", {"a": 1})
        second, third = pgq.enqueue_many(conn, [pgq.NewJob("work"), pgq.NewJob("work")])
        conn.commit()
        with pytest.raises(pgq.WaitTimeout):
            pgq.wait(conn, third.id, timeout=timedelta(0))

    assert first.id < second.id < third.id


def test_what_the_encoding_of_a_connection_cannot_write_is_told(shared: str) -> None:
    with psycopg.connect(shared, client_encoding="latin1") as conn:
        assert pgq.enqueue(conn, "work", {"name": "é"}).id
        with pytest.raises(pgq.UsageError, match=r"encoding .* has no 日: set its client_encoding"):
            pgq.enqueue(conn, "work", {"name": "日"})


def test_a_pipeline_is_no_obstacle(shared: str) -> None:
    with psycopg.connect(shared) as conn, conn.pipeline():
        first = pgq.enqueue(conn, "work", {"a": 1})
        many = pgq.enqueue_many(conn, [NewJob("work"), NewJob("work")])

    assert [first.id < job.id for job in many] == [True, True]


def test_a_connection_of_another_encoding_is_told_what_it_needs(shared: str) -> None:
    with psycopg.connect(shared, autocommit=True) as conn:
        job = pgq.enqueue(conn, "work")
        conn.execute(
            "update pgq.jobs set status = 'done', finished_at = now(), result = '\"日\"'"
            " where id = %s",
            (job.id,),
        )
    with psycopg.connect(shared, client_encoding="sql_ascii", autocommit=True) as conn:
        assert pgq.wait(conn, job.id, timeout=BRIEFLY) == "日"


@pytest.mark.parametrize(
    "options",
    [{"delay": 5}, {"delay": "5m"}, {"timeout": 5}, {"scheduled_at": "2030-01-01T00:00:00Z"}],
)
def test_a_duration_or_time_of_another_type_is_refused(shared: str, options: Any) -> None:
    with psycopg.connect(shared) as conn, pytest.raises(UsageError, match="give a "):
        pgq.enqueue(conn, "work", **options)
