"""The server and the databases that tests use.

`PGQ_TEST_DSN` names a server to use (a superuser's DSN); without it each test process starts
one of its own, of the major version `PGQ_TEST_PG` (default 18), when the first test asks.

`conn`    a connection whose transaction is rolled back afterwards: for a statement or two.
`shared`  the DSN of this process's database, empty before and after: where commits are needed.
`elder`   a session there that is old enough to declare workers dead.
`db`      the DSN of a database of the test's own: for NOTIFY, migrations, workers, chaos.
`blank`   like `db`, without the schema.
"""

import asyncio
import inspect
import os
from collections.abc import Iterator

import psycopg
import pytest

from pgq import migrate
from tests.support import cluster
from tests.support.databases import Server, empty, row_counts, wait_until


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The server of this test process."""
    if given := os.environ.get("PGQ_TEST_DSN"):
        yield Server(given)
        return
    with cluster.running(int(os.environ.get("PGQ_TEST_PG", "18"))) as started:
        yield Server(started.dsn())


@pytest.fixture(scope="session")
def template(server: Server) -> Iterator[str]:
    """The name of a database with the schema installed and no connection to it."""
    with server.database() as dsn:
        with psycopg.connect(dsn) as conn:
            migrate.install(conn)
            name = conn.info.dbname
        yield name


@pytest.fixture
def db(server: Server, template: str) -> Iterator[str]:
    """The DSN of a fresh clone of the template."""
    with server.database(template=template) as dsn:
        yield dsn


@pytest.fixture
def blank(server: Server) -> Iterator[str]:
    """The DSN of a fresh database without the schema."""
    with server.database() as dsn:
        yield dsn


@pytest.fixture(scope="session")
def shared_pristine(server: Server, template: str) -> Iterator[tuple[str, dict[str, int]]]:
    """The DSN of this process's database, and the row counts it has when nothing was done."""
    with server.database(template=template) as dsn:
        with psycopg.connect(dsn) as conn:
            pristine = row_counts(conn)
        yield dsn, pristine


@pytest.fixture
def shared(shared_pristine: tuple[str, dict[str, int]]) -> Iterator[str]:
    """The DSN of this process's database; each test finds it as installed."""
    dsn, pristine = shared_pristine
    with psycopg.connect(dsn) as conn:
        assert row_counts(conn) == pristine
    yield dsn
    with psycopg.connect(dsn) as conn:
        empty(conn, pristine)


@pytest.fixture(scope="session")
def elder_session(shared_pristine: tuple[str, dict[str, int]]) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shared_pristine[0], autocommit=True) as conn:
        wait_until(conn, "select pgq.session_age() >= interval '5 seconds'")
        yield conn


@pytest.fixture
def elder(shared: str, elder_session: psycopg.Connection) -> psycopg.Connection:  # noqa: ARG001
    """A session of the shared database that is old enough to declare workers dead."""
    return elder_session


@pytest.fixture
def conn(shared_pristine: tuple[str, dict[str, int]]) -> Iterator[psycopg.Connection]:
    """A connection in a transaction that is rolled back."""
    with psycopg.connect(shared_pristine[0]) as conn:
        yield conn
        conn.rollback()


def pytest_configure() -> None:
    """Forget what the environment says about databases; subprocesses must not find another."""
    for name in list(os.environ):
        if name.startswith(("PG", "DATABASE_URL")) and not name.startswith("PGQ_TEST_"):
            del os.environ[name]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests, each in an event loop of its own."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    wanted = inspect.signature(test).parameters
    asyncio.run(test(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True
