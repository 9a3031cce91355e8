"""Through PgBouncer in transaction mode: no LISTEN, no session lock, no prepared statement."""

from collections.abc import Iterator
from pathlib import Path
from signal import SIGTERM

import psycopg
import pytest

from tests.support import jobs, workers
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.pooler import pooling
from tests.support.workers import Workers


@pytest.fixture
def pooled(db: str) -> Iterator[str]:
    """The DSN of the test's database through a pooler with two connections."""
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute(f"alter database {conn.info.dbname} set synchronous_commit = on".encode())
    with pooling(db, size=2) as dsn:
        yield dsn


@pytest.fixture
def producer(pooled: str) -> Iterator[Connection]:
    """A producer that enqueues through the pooler."""
    with psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as conn:
        yield conn


@pytest.fixture
def crew(pooled: str, tmp_path: Path) -> Iterator[Workers]:
    """Starts workers that work through the pooler."""
    with workers.starting(pooled, {"DESK": str(tmp_path)}) as started:
        yield started


def test_a_worker_works_through_a_pooler_by_polling_and_says_so(
    producer: Connection, crew: Workers
) -> None:
    worker = crew.start("--app", "tests.worker.handlers:app", "--poll", "0.1s")
    line = worker.seen("a pooler is between")
    for _ in range(100):
        jobs.enqueue(producer, "quick")
    jobs.fill(producer, 100, "quick")

    wait_until(producer, "select count(*) = 200 from pgq.jobs where status = 'done'")
    assert jobs.rows(producer, "select lock_key, waiting, died_at from pgq.workers") == [
        {"lock_key": None, "waiting": False, "died_at": None}
    ]
    worker.send(SIGTERM)
    assert worker.ended() == 0
    assert [entry for entry in worker.log() if entry["level"] != "info"] == [line]


def test_a_worker_leaves_no_setting_on_the_sessions_of_a_pooler(
    producer: Connection, crew: Workers
) -> None:
    crew.start("--app", "tests.worker.handlers:app", "--poll", "0.1s")
    wait_until(producer, "select count(*) = 1 from pgq.workers")

    with producer.transaction():  # keeps one of the two sessions; the worker has the other one
        mine = jobs.value(producer, "show synchronous_commit")
        with psycopg.connect(producer.info.dsn, autocommit=True) as another:
            theirs = jobs.value(another, "show synchronous_commit")

    assert (mine, theirs) == ("on", "on")
