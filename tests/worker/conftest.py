"""What tests of the worker share: the queue they fill, and ways to have it worked off."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest

import pgq
from pgq import migrate
from tests.support import cluster, jobs, workers
from tests.support.cluster import Cluster
from tests.support.jobs import Connection, Row
from tests.support.workers import Workers


@pytest.fixture
def queue(shared: str) -> Iterator[Connection]:
    """An autocommit connection to the shared database, as a producer has it."""
    with psycopg.connect(shared, autocommit=True) as conn:
        yield conn


class WorkOff(Protocol):
    """Enqueues one job for a handler, drains the queue, and gives the job's row."""

    def __call__(
        self,
        handler: Callable[..., Any],
        payload: dict[str, Any] | None = None,
        *,
        retry: Any = None,
        timeout: Any = None,
        max_attempts: int | None = None,
    ) -> Row: ...


@pytest.fixture
def work_off(queue: Connection, shared: str) -> WorkOff:
    """See WorkOff."""

    def work_off(
        handler: Callable[..., Any], payload: dict[str, Any] | None = None, **options: Any
    ) -> Row:
        app = pgq.App()
        app.job("work", **options)(handler)
        job_id = jobs.enqueue(queue, "work", payload=payload or {}, **_limits(options))
        workers.drain(shared, app)
        return jobs.row(queue, job_id)

    return work_off


def _limits(options: dict[str, Any]) -> dict[str, Any]:
    """What enqueue must be told, since the kind is not declared before a worker has started."""
    return {name: options[name] for name in ("max_attempts", "timeout") if options.get(name)}


@pytest.fixture
def fleet(shared: str, tmp_path: Path) -> Iterator[Workers]:
    """Starts `pgq worker` processes on the shared database; handlers find `tmp_path` in DESK."""
    with workers.starting(shared, {"DESK": str(tmp_path)}) as started:
        yield started


@pytest.fixture
def own() -> Iterator[Cluster]:
    """A server of the test's own, to stop, with the schema in its database `postgres`."""
    with cluster.running(int(os.environ.get("PGQ_TEST_PG", "18"))) as started:
        with psycopg.connect(started.dsn(), autocommit=True) as conn:
            # A crash must forget nothing that was committed.
            conn.execute("alter database postgres set synchronous_commit = on")
            conn.execute("alter database postgres set search_path = ''")
            migrate.install(conn)
        yield started
