"""Everything at once on the same few jobs, named in any order: nobody deadlocks or fails."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TypeAlias

import psycopg

from pgq import db
from pgq.calls import workers as worker_calls
from pgq.errors import WorkerDead
from pgq.model import Failed, HandedBack
from tests.support import jobs
from tests.support.jobs import Connection

JOBS, ROUNDS, BATCH = 60, 60, 25
Role: TypeAlias = Callable[[Connection, random.Random], None]


def some(conn: Connection, dice: random.Random) -> list[int]:
    """Ids of a few jobs in no order."""
    ids = [row["id"] for row in jobs.rows(conn, "select id from pgq.jobs")]
    return dice.sample(ids, BATCH)


def work(conn: Connection, dice: random.Random) -> None:
    """Claim, and end the jobs in any order, some of them twice."""
    worker_id = jobs.register(conn, lock_key=dice.getrandbits(60))
    for _ in range(ROUNDS):
        try:
            claimed = jobs.claim(conn, worker_id, BATCH)
        except WorkerDead:
            worker_id = jobs.register(conn, lock_key=dice.getrandbits(60))
            continue
        dice.shuffle(claimed)
        half = len(claimed) // 2
        jobs.finish(conn, worker_id, *claimed[:half])
        jobs.settle(conn, worker_id, Failed("again", delay=timedelta(0)), *claimed[half:])
        jobs.settle(conn, worker_id, HandedBack(), *claimed)
        db.run(conn, worker_calls.heartbeat(worker_id, lock_key=None, draining=False))


def cancel(conn: Connection, dice: random.Random) -> None:
    for _ in range(ROUNDS):
        jobs.cancel(conn, *some(conn, dice))
        jobs.kill(conn, *some(conn, dice), force=dice.random() < 0.5)


def requeue(conn: Connection, dice: random.Random) -> None:
    for _ in range(ROUNDS):
        jobs.requeue(conn, *some(conn, dice), force=True)


def bury(conn: Connection, _dice: random.Random) -> None:
    """Declare workers dead and give their jobs back."""
    for round_ in range(ROUNDS):
        if round_ % 10 == 0:
            conn.execute(
                "update pgq.workers set died_at = now() where id ="
                " (select max(id) from pgq.workers where died_at is null)"
            )
        jobs.reap(conn)


def play(dsn: str, role: Role, seed: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        role(conn, random.Random(seed))


def test_workers_operators_and_reapers_never_deadlock(shared: str) -> None:
    roles: list[Role] = [work, work, work, cancel, requeue, requeue, bury]
    with psycopg.connect(shared, autocommit=True) as conn:
        for number in range(JOBS):
            jobs.enqueue(conn, unique_key=f"key {number}" if number % 2 else None)

        with ThreadPoolExecutor(len(roles)) as threads:
            playing = [threads.submit(play, shared, role, seed) for seed, role in enumerate(roles)]
            for player in playing:
                player.result()

        assert jobs.value(conn, "select count(*) from pgq.jobs") == JOBS
        assert (
            jobs.value(
                conn,
                "select deadlocks from pg_catalog.pg_stat_database"
                " where datname = current_database()",
            )
            == 0
        )
