"""What tests of the worker share: the queue they fill, ways to have it worked off, and a server
that may be broken.
"""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, Protocol

import psycopg
import pytest

import pgq
from pgq import migrate
from tests.support import cluster, jobs, workers
from tests.support.cluster import Cluster
from tests.support.databases import Server
from tests.support.jobs import Connection, Row
from tests.support.proxy import Proxy, proxying
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
        isolation: Literal["process"] | None = None,
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
def talkative() -> Iterator[None]:
    """The application's logger `shop` says what is of level info and above."""
    shop = logging.getLogger("shop")
    shop.setLevel(logging.INFO)
    yield
    shop.setLevel(logging.NOTSET)
    shop.propagate = True
    shop.handlers.clear()


@pytest.fixture
def fleet(shared: str, tmp_path: Path) -> Iterator[Workers]:
    """Starts `pgq worker` processes on the shared database; handlers find `tmp_path` in DESK."""
    with workers.starting(shared, {"DESK": str(tmp_path)}) as started:
        yield started


@pytest.fixture
def proxy(shared: str) -> Iterator[Proxy]:
    """A proxy before the shared database."""
    with proxying(shared) as made:
        yield made


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A server that the tests of a module may stop, crash, and tell to refuse."""
    settings = {"synchronous_commit": "on"}  # a crash must forget nothing that was committed
    with cluster.running(int(os.environ.get("PGQ_TEST_PG", "18")), settings) as started:
        yield started


@pytest.fixture(scope="module")
def own_template(own: Cluster) -> str:
    """The name of a database there with the schema."""
    with psycopg.connect(own.dsn()) as conn:
        migrate.install(conn)
    return "postgres"


@pytest.fixture
def home(own: Cluster, own_template: str) -> Iterator[str]:
    """The DSN of a database of the test's own on that server."""
    with Server(own.dsn()).database(template=own_template) as dsn:
        yield dsn
        if not own.started:
            own.start()


@pytest.fixture
def hired(home: str, tmp_path: Path) -> Iterator[Workers]:
    """Starts `pgq worker` processes on that database; handlers find `tmp_path` in DESK."""
    with workers.starting(home, {"DESK": str(tmp_path)}) as started:
        yield started
