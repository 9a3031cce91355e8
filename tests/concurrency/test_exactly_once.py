"""Many claimers at once: each job to one of them, and no claim over its limit."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier, Event

import psycopg

from pgq.calls.jobs import Place
from pgq.model import ClaimedJob, Failed
from tests.support import jobs

CLAIMERS, EACH, BATCH = 8, 2000, 25


def place_of(job: ClaimedJob) -> Place:
    return Place(job.queue, job.priority, job.scheduled_at, job.id)


def drain(dsn: str, start: Barrier) -> list[tuple[int, int]]:
    """Claim and finish until nothing is left, mostly from a remembered place; (id, lease) a job."""
    taken: list[tuple[int, int]] = []
    place: Place | None = None
    with psycopg.connect(dsn, autocommit=True) as conn:
        worker_id = jobs.register(conn)
        start.wait()
        while True:
            claimed = jobs.claim(conn, worker_id, BATCH, places=[place] if place else None)
            assert len(claimed) <= BATCH
            if not claimed and place is None:
                return taken
            place = place_of(claimed[-1]) if claimed else None
            assert jobs.finish(conn, worker_id, *claimed) == []
            taken += [(job.id, job.lease) for job in claimed]


def test_eight_claimers_get_each_of_their_jobs_exactly_once(shared: str) -> None:
    with psycopg.connect(shared, autocommit=True) as conn:
        jobs.fill(conn, CLAIMERS * EACH)
        with ThreadPoolExecutor(CLAIMERS) as threads:
            start = Barrier(CLAIMERS)
            claimers = [threads.submit(drain, shared, start) for _ in range(CLAIMERS)]
            taken = [pair for claimer in claimers for pair in claimer.result()]

        ids, leases = [job_id for job_id, _ in taken], {lease for _, lease in taken}
        assert len(ids) == len(set(ids)) == len(leases) == CLAIMERS * EACH
        (sums,) = jobs.rows(
            conn,
            "select sum(attempts) as attempts, count(*) as done from pgq.jobs"
            " where status = 'done'",
        )
        assert sums == {"attempts": CLAIMERS * EACH, "done": CLAIMERS * EACH}
        assert jobs.counted(conn) == {"done": CLAIMERS * EACH, "failed": 0, "retried": 0}
        assert jobs.value(conn, "select count(*) from pgq.attempts") == 0


def keep_changing(dsn: str, over: Event) -> None:
    """Give pending jobs new row versions and other places in the order, all the time."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        while not over.is_set():
            conn.execute(
                "update pgq.jobs set priority = (random() * 3)::integer,"
                " scheduled_at = scheduled_at - interval '1 ms'"
                " where id in (select id from pgq.jobs where status = 'pending'"
                " order by random() limit 20 for update skip locked)"
            )


def nibble(dsn: str, limit: int, claims: list[int]) -> None:
    """Claim a few at a time until nothing is left; every other one is put back once."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        worker_id = jobs.register(conn)
        unfinished = "select exists (select from pgq.jobs where finished_at is null)"
        while jobs.value(conn, unfinished):
            claimed = jobs.claim(conn, worker_id, limit)
            claims.append(len(claimed))
            again = [job for job in claimed if job.attempts == 1 and job.id % 2]
            done = [job for job in claimed if job not in again]
            assert jobs.settle(conn, worker_id, Failed("x", delay=timedelta(0)), *again) == []
            assert jobs.finish(conn, worker_id, *done) == []


def test_no_claim_exceeds_its_limit_while_the_jobs_change(shared: str) -> None:
    limit, over = 3, Event()
    claims: list[int] = []
    with psycopg.connect(shared, autocommit=True) as conn, ThreadPoolExecutor(5) as threads:
        jobs.fill(conn, 600)
        changing = [threads.submit(keep_changing, shared, over) for _ in range(2)]
        try:
            nibbling = [threads.submit(nibble, shared, limit, claims) for _ in range(3)]
            for thread in nibbling:
                thread.result()
        finally:
            over.set()
        for thread in changing:
            thread.result()

        assert max(claims) == limit
        found = Counter(
            (row["status"], row["attempts"] - 1 == row["id"] % 2)
            for row in jobs.rows(conn, "select * from pgq.jobs")
        )
        assert found == {("done", True): 600}
