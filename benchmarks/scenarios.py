"""What is measured: each figure of pgq with its bare counterpart from the same round."""

import asyncio
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg

import pgq
from benchmarks import bare
from benchmarks.worker import wait_until_done, worker


@dataclass(frozen=True, slots=True)
class Pair:
    """One figure of one round: ours and the yardstick's, in the same unit."""

    ours: float
    bare: float


def drain(dsn: str, jobs: int, kind: str) -> Pair:
    """Jobs a second: from the first claim until every job is finished and committed."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("truncate bare.jobs, pgq.jobs, pgq.throughput")
        conn.execute(bare.FILL, (jobs,))
        _settle(conn)
        bare_seconds = asyncio.run(bare.drain(dsn, jobs))
        conn.execute("truncate bare.jobs")
        conn.execute(
            "insert into pgq.jobs (kind, payload)"
            " select %s, jsonb_build_object('n', n) from generate_series(1, %s) n",
            (kind, jobs),
        )
        _settle(conn)
        with worker(dsn, kind):
            wait_until_done(conn, jobs)
            ended = conn.execute("select clock_timestamp()").fetchone()
        first = conn.execute(
            "select min(locked_at), count(*) from pgq.jobs where status = 'done'"
        ).fetchone()
        assert ended is not None
        assert first is not None
        assert first[1] == jobs, "not every job is done"
        ours = (ended[0] - first[0]).total_seconds()
    return Pair(jobs / ours, jobs / bare_seconds)


def latency(dsn: str, jobs: int) -> tuple[Pair, Pair]:
    """Milliseconds from before the enqueue to the handler's start, worker idle: p50 and p99."""
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as conn:
        conn.execute("truncate bare.jobs, pgq.jobs, pgq.throughput")
        bare_times: list[float] = []
        ready = threading.Event()
        thread = threading.Thread(target=bare.listen_and_claim, args=(dsn, jobs, ready, bare_times))
        thread.start()
        ready.wait()
        time.sleep(0.5)
        for _ in range(jobs):
            conn.execute(
                "with i as (insert into bare.jobs (kind, payload)"
                " values ('stamp', jsonb_build_object('sent', %s::float8)) returning id)"
                " select pg_notify('bare', '') from i",
                (time.time(),),
            )
            time.sleep(0.01)
        thread.join()
        with tempfile.NamedTemporaryFile() as stamps:
            with worker(dsn, "stamp", PGQ_BENCH_STAMPS=stamps.name):
                time.sleep(0.5)
                for _ in range(jobs):
                    pgq.enqueue(conn, "stamp", {"sent": time.time()})
                    time.sleep(0.01)
                wait_until_done(conn, jobs)
            ours = [float(line) for line in Path(stamps.name).read_text().split()]
    assert len(ours) == len(bare_times) == jobs
    p50 = Pair(statistics.median(ours), statistics.median(bare_times))
    return p50, Pair(_p99(ours), _p99(bare_times))


def enqueue_bulk(dsn: str, jobs: int) -> Pair:
    """Jobs a second in one transaction: enqueue_many, beside COPY of the same rows."""
    with psycopg.connect(dsn) as conn:
        conn.execute("truncate bare.jobs, pgq.jobs")
        conn.commit()
        began = time.perf_counter()
        with conn.cursor().copy("copy bare.jobs (kind, payload) from stdin") as copy:
            for n in range(jobs):
                copy.write_row(("noop", f'{{"n": {n}}}'))
        conn.commit()
        copied = time.perf_counter() - began
        began = time.perf_counter()
        pgq.enqueue_many(conn, (pgq.NewJob("noop", {"n": n}) for n in range(jobs)))
        conn.commit()
        enqueued = time.perf_counter() - began
    return Pair(jobs / enqueued, jobs / copied)


def enqueue_single(dsn: str, jobs: int) -> Pair:
    """Jobs a second, one commit each on one connection, beside a bare INSERT."""
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as conn:
        conn.execute("truncate bare.jobs, pgq.jobs")
        began = time.perf_counter()
        for n in range(jobs):
            conn.execute(
                "insert into bare.jobs (kind, payload) values ('noop', %s::jsonb) returning id",
                (f'{{"n": {n}}}',),
            ).fetchone()
        inserted = time.perf_counter() - began
        began = time.perf_counter()
        for n in range(jobs):
            pgq.enqueue(conn, "noop", {"n": n})
        enqueued = time.perf_counter() - began
    return Pair(jobs / enqueued, jobs / inserted)


def _settle(conn: psycopg.Connection) -> None:
    conn.execute("vacuum (analyze) bare.jobs")
    conn.execute("vacuum (analyze) pgq.jobs")
    conn.execute("checkpoint")


def _p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]
