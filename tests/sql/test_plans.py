"""The rows that each call touches are bounded by its batch, whatever the planner believes.

A plan that a worker's session made when the table was small stays in use while the table grows,
so each call is measured twice: with the plans made then, and with new ones. What is counted is
not time: index entries and rows read, and buffers looked at, of all relations of the schema.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

import pgq
from pgq import db
from pgq.calls import jobs as job_calls
from pgq.calls import workers as worker_calls
from pgq.calls.jobs import Place, Progress
from pgq.model import ClaimedJob, Failed, NewJob
from tests.support import jobs
from tests.support.jobs import Connection

BATCH = 100
MANY = 50_000
ROWS_EACH, BUFFERS_EACH = 20, 40
"""What one job of a batch may cost, on all tables and indexes together."""

# What the table held when the planner looked at it last, and whether it took statistics then.
PAST: Mapping[str, tuple[str | None, int]] = {
    "never looked": (None, 0),
    "an empty table": ("pending", 0),
    "five pending jobs": ("pending", 5),
    "five suspects": ("suspect", 5),
    "five running jobs": ("running", 5),
    "five finished jobs": ("done", 5),
    "only pending jobs": ("pending", 3000),
    "only running jobs": ("running", 3000),
    "only finished jobs": ("done", 3000),
}
SAMPLES = {
    "pending": "(kind) select 'work'",
    "suspect": "(kind, losses, attempts) select 'work', 1, 2",
    "running": (
        "(kind, status, lease, worker_id)"
        " select 'work', 'running', i, (select min(w.id) from pgq.workers as w)"
    ),
    "done": "(kind, status, finished_at) select 'work', 'done', now()",
}


@dataclass
class Queue:
    """A worker with 100 running jobs, a dead one with as many, and many others' jobs."""

    conn: Connection
    worker_id: int
    dead_id: int


@dataclass(frozen=True)
class Touched:
    rows: int
    buffers: int


def counters(conn: Connection) -> Touched:
    """What this session has touched since it last told the statistics collector."""
    (row,) = jobs.rows(
        conn,
        "select sum(pg_catalog.pg_stat_get_xact_tuples_returned(c.oid))::bigint as rows,"
        " sum(pg_catalog.pg_stat_get_xact_blocks_fetched(c.oid))::bigint as buffers"
        " from pg_catalog.pg_class as c"
        " where c.relnamespace = 'pgq'::regnamespace and c.relkind in ('r', 'i')",
    )
    return Touched(**row)


@contextmanager
def bounded(conn: Connection, name: str, count: int = BATCH) -> Iterator[None]:
    """Fail if the block touches more than `count` jobs may cost."""
    before = counters(conn)
    yield
    after = counters(conn)
    rows, buffers = after.rows - before.rows, after.buffers - before.buffers
    assert rows <= ROWS_EACH * count, f"{name}: {rows} rows for {count} jobs"
    assert buffers <= BUFFERS_EACH * count, f"{name}: {buffers} buffers for {count} jobs"


def place_of(job: ClaimedJob) -> Place:
    return Place(job.queue, job.priority, job.scheduled_at, job.id)


def use(queue: Queue, within: Callable[..., Any]) -> None:
    """Call every function on a batch, in a transaction that is rolled back."""
    conn, worker_id = queue.conn, queue.worker_id
    with conn.transaction(force_rollback=True):
        with within(conn, "claim"):
            first = jobs.claim(conn, worker_id, BATCH)
        places = [place_of(first[-1])] if first else [Place("default", 0, jobs.now(conn), 0)]
        with within(conn, "claim from a place"):
            second = jobs.claim(conn, worker_id, BATCH, places=places)
        with within(conn, "claim of a kind"):
            jobs.claim(conn, worker_id, BATCH, kinds=["work"])
        with within(conn, "finish"):
            jobs.finish(conn, worker_id, *first)
        with within(conn, "finish sent again"):
            assert jobs.finish(conn, worker_id, *first) == []
        with within(conn, "settle"):
            jobs.settle(conn, worker_id, Failed("no luck"), *second)
        with within(conn, "settle sent again"):
            assert jobs.settle(conn, worker_id, Failed("no luck"), *second) == []
        with within(conn, "heartbeat"):
            db.run(conn, worker_calls.heartbeat(worker_id, lock_key=None, draining=False))
        with within(conn, "list of what runs"):
            held = db.run(conn, job_calls.running(worker_id, queues=["default", "other"]))
        with within(conn, "reap"):
            jobs.reap(conn, BATCH)
        with within(conn, "reap of nothing"):
            jobs.reap(conn, BATCH)
        use_as_operator(queue, first, within)
        said = [Progress(job, '{"fraction": 0.5}') for job in held[:BATCH]]
        with within(conn, "note of progress"):
            db.run(conn, job_calls.note_progress(said))
        ended = [Progress(job, '{"fraction": 0.5}') for job in first]
        with within(conn, "note of progress of jobs that have ended"):
            db.run(conn, job_calls.note_progress(ended))


def use_as_operator(queue: Queue, done: list[ClaimedJob], within: Callable[..., Any]) -> None:
    conn = queue.conn
    with within(conn, "requeue"):
        jobs.requeue(conn, *[job.id for job in done])
    with within(conn, "kill"):
        jobs.kill(conn, *[job.id for job in done])
    with within(conn, "cancel"):
        jobs.cancel(conn, *[job.id for job in done])
    with within(conn, "enqueue"):
        pgq.enqueue(conn, "work", unique_key="key")
    with within(conn, "enqueue of a taken key"):
        pgq.enqueue(conn, "work", unique_key="key")
    with within(conn, "enqueue of many"):
        bulk = [NewJob("work", unique_key="key")] * 5 + [NewJob("work")] * (BATCH - 5)
        pgq.enqueue_many(conn, bulk)
    with within(conn, "tidy"):
        jobs.value(conn, "select pgq.tidy()")
    with within(conn, "wake"):
        jobs.value(conn, "select pgq.wake('default', 'work', %s)", BATCH)


@contextmanager
def freely(_conn: Connection, _name: str) -> Iterator[None]:
    """Measure nothing."""
    yield


def insert(conn: Connection, status: str, count: int) -> None:
    conn.execute(
        f"insert into pgq.jobs {SAMPLES[status]} from generate_series(1, %s) as i".encode(),
        (count,),
    )


def fill(queue: Queue) -> None:
    """Make the table large."""
    insert(queue.conn, "done", MANY)
    insert(queue.conn, "pending", MANY)
    queue.conn.execute(
        "insert into pgq.workers (host, pid, version, queues, concurrency, died_at)"
        " select 'testhost', 1, '0', '{default}', 1, now() from generate_series(1, %s)",
        (MANY // 10,),
    )
    for worker_id in (queue.worker_id, queue.dead_id):
        queue.conn.execute(
            "insert into pgq.jobs (kind, status, attempts, lease, worker_id)"
            " select 'work', 'running', 1, i, %s from generate_series(1, %s) as i",
            (worker_id, BATCH),
        )


@pytest.fixture
def queue(shared: str) -> Iterator[Queue]:
    """A small queue whose statistics stay as they are."""
    with psycopg.connect(shared, autocommit=True) as conn:
        conn.execute("alter table pgq.jobs set (autovacuum_enabled = off)")
        # Neither dead rows of other tests nor what statistics say of them.
        conn.execute("truncate pgq.jobs, pgq.attempts, pgq.throughput, pgq.workers")
        conn.execute("delete from pg_catalog.pg_statistic where starelid = 'pgq.jobs'::regclass")
        worker_id, dead_id = jobs.register(conn), jobs.register(conn)
        jobs.die(conn, dead_id)
        conn.execute(
            "update pgq.workers set stopped_at = now() - interval '2 days' where id = %s",
            (jobs.register(conn),),
        )
        yield Queue(conn, worker_id, dead_id)
        conn.execute("alter table pgq.jobs reset (autovacuum_enabled)")
        conn.execute("delete from pg_catalog.pg_statistic where starelid = 'pgq.jobs'::regclass")


@pytest.mark.parametrize("past", PAST)
def test_a_call_touches_rows_for_its_batch_whatever_the_statistics(queue: Queue, past: str) -> None:
    status, count = PAST[past]
    if status:
        insert(queue.conn, status, count)
        queue.conn.execute("analyze pgq.jobs")
    for _ in range(6):  # after five runs the server may keep a plan for good
        use(queue, freely)
    if count > 5:
        queue.conn.execute("truncate pgq.jobs")
    fill(queue)

    use(queue, bounded)
    queue.conn.execute("discard plans")
    use(queue, bounded)


def test_a_call_touches_rows_for_its_batch_with_fresh_statistics(queue: Queue) -> None:
    fill(queue)
    queue.conn.execute("analyze pgq.jobs")

    use(queue, bounded)
    with queue.conn.transaction(force_rollback=True):
        claimed = jobs.claim(queue.conn, queue.worker_id, BATCH)
        again = jobs.claim(queue.conn, queue.worker_id, BATCH, places=[place_of(claimed[-1])])
        assert (len(claimed), len(again)) == (BATCH, BATCH)


def test_a_look_over_many_priorities_touches_rows_for_its_batch(queue: Queue) -> None:
    conn = queue.conn
    conn.execute(
        "insert into pgq.jobs (kind, priority)"
        " select 'work', i / 200 from generate_series(0, 9999) as i"
    )

    with conn.transaction(), bounded(conn, "claim", 2 * BATCH):
        assert len(jobs.claim(conn, queue.worker_id, 2 * BATCH + 50)) == 2 * BATCH + 50


def entries(conn: Connection) -> int:
    """How many entries of the index jobs_pending this session has read."""
    read: int = jobs.value(
        conn, "select pg_catalog.pg_stat_get_xact_tuples_returned('pgq.jobs_pending'::regclass)"
    )
    return read


def test_a_remembered_place_spares_a_claim_the_finished_jobs_of_a_held_snapshot(
    queue: Queue, shared: str
) -> None:
    conn, finished = queue.conn, 20_000
    claimed: list[ClaimedJob] = []
    jobs.fill(conn, finished + 1000)
    with psycopg.connect(shared) as report:
        report.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        report.execute("select count(*) from pgq.jobs")
        for _ in range(finished // 1000):
            claimed += jobs.claim(conn, queue.worker_id, 1000)
            jobs.finish(conn, queue.worker_id, *claimed[-1000:])
        place = place_of(claimed[-1])

        with conn.transaction():
            start = entries(conn)
            assert len(jobs.claim(conn, queue.worker_id, BATCH, places=[place])) == BATCH
            remembered = entries(conn) - start
            assert len(jobs.claim(conn, queue.worker_id, BATCH)) == BATCH
            full = entries(conn) - start - remembered

    assert remembered <= 2 * BATCH
    assert full > finished
