"""`pgq demo`: from nothing to counts, and nothing left behind."""

import psycopg
import pytest

from tests.cli.conftest import Run
from tests.support.databases import Server

MADE = "select datname from pg_catalog.pg_database where datname like 'pgq_demo_%'"


@pytest.fixture
def made(server: Server) -> set[str]:
    """The demo databases that there were before."""
    with psycopg.connect(server.dsn) as conn:
        return {name for (name,) in conn.execute(MADE)}


def test_the_demo_shows_retries_and_dead_letters_and_cleans_up(
    server: Server, blank: str, made: set[str], pgq: Run
) -> None:
    ended = pgq("demo", dsn=blank)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert "default      0          0        0       2       48" in lines
    assert sum("there is no customer" in line for line in lines) == 2
    assert "attempt failed" in ended.err
    assert "job snoozed" in ended.err
    with psycopg.connect(server.dsn) as conn:
        assert {name for (name,) in conn.execute(MADE)} == made
    with psycopg.connect(blank) as conn:
        assert conn.execute("select to_regnamespace('pgq')").fetchone() == (None,)


def test_the_demo_is_refused_where_it_may_make_no_database(
    server: Server, blank: str, pgq: Run
) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute("create role pgq_demo_poor login")
        try:
            dsn = psycopg.conninfo.make_conninfo(blank, user="pgq_demo_poor")
            ended = pgq("demo", dsn=dsn)
        finally:
            conn.execute("drop role pgq_demo_poor")
    assert (ended.code, ended.out) == (5, "")
    assert ended.err == (
        "pgq: a database of its own cannot be made here, since the role may not: use another "
        "role, or another server\n"
    )
