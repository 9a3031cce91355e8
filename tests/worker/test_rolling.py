"""Rolling restarts under load: nothing is lost, and no attempt is charged for them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIGTERM

import psycopg
import pytest

import pgq
from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.workers import WorkerProcess, Workers

ROUGH = ("--app", "tests.worker.rough:app", "-c", "8", "--kind", "rest", "--kind")
CREW = (
    (*ROUGH, "rest in a thread"),
    (*ROUGH, "rest in a thread"),
    ("--exec", "sleep 0.05", "-c", "4", "--kind", "command"),
)
"""What each of the three workers does."""

RESTARTS = 10
PERIOD = 0.02
"""Seconds between two enqueues: less work than the crew can do."""


@contextmanager
def load(dsn: str) -> Iterator[None]:
    """Jobs of each kind are enqueued all the time while the block runs."""
    enough = threading.Event()

    def enqueue() -> None:
        with psycopg.connect(dsn, autocommit=True) as conn:
            while not enough.wait(PERIOD):
                for kind in ("rest", "rest in a thread", "command"):
                    pgq.enqueue(conn, kind, max_attempts=1)

    producer = threading.Thread(target=enqueue)
    producer.start()
    try:
        yield
    finally:
        enough.set()
        producer.join()


@pytest.mark.parametrize("grace", [None, "0s"])
def test_rolling_restarts_lose_nothing_and_charge_nothing(
    queue: Connection, shared: str, fleet: Workers, grace: str | None
) -> None:
    options = () if grace is None else ("--grace", grace)
    crew: list[WorkerProcess] = [fleet.start(*role, *options) for role in CREW]
    stopped: list[WorkerProcess] = []
    for worker in crew:
        worker.seen("worker started")
    with load(shared):
        for turn in range(RESTARTS):
            place = turn % len(CREW)
            successor = fleet.start(*CREW[place], *options)
            successor.seen("worker started")
            crew[place].send(SIGTERM)
            stopped.append(crew[place])
            crew[place] = successor
    codes = [worker.ended() for worker in stopped]
    wait_until(queue, "select bool_and(finished_at is not null) from pgq.jobs")

    assert codes == [0] * RESTARTS
    found = jobs.rows(queue, "select distinct status, attempts, losses from pgq.jobs")
    assert found == [{"status": "done", "attempts": 1, "losses": 0}]
    assert jobs.value(queue, "select count(*) from pgq.attempts") == 0
    assert jobs.counted(queue)["done"] == jobs.value(queue, "select count(*) from pgq.jobs") > 100
    assert jobs.value(queue, "select count(*) from pgq.workers where died_at is not null") == 0
