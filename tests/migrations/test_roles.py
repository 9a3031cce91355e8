"""Who may install, and in which surroundings: roles without superuser rights, hostile paths."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import sql

from pgq import migrate
from pgq.errors import Refused
from pgq.migrate import install
from tests.support import jobs
from tests.support.catalog import fingerprint
from tests.support.jobs import Connection
from tests.support.psql import psql

# Functions, operators and tables that a careless statement would take for PostgreSQL's or ours.
EVIL = """
create schema evil;
create function evil.now() returns timestamptz language sql return timestamptz 'epoch';
create function evil.random() returns double precision language sql return 0.5;
create function evil.jsonb_typeof(jsonb) returns text language sql return 'object'::text;
create function evil.octet_length(text) returns integer language sql return 0;
create function evil.length(text) returns integer language sql return 1;
create function evil.current_setting(text, boolean) returns text language sql return '1'::text;
create function evil.pg_backend_pid() returns integer language sql return 1;
create function evil.clock_timestamp() returns timestamptz language sql return timestamptz 'epoch';
create function evil.width_bucket(double precision, double precision[]) returns integer
    language sql return 5;
create function evil.power(double precision, double precision) returns double precision
    language sql return 1;
create function evil.add(bigint, bigint) returns bigint language sql return 0;
create operator evil.+ (function = evil.add, leftarg = bigint, rightarg = bigint);
create table evil.jobs (id bigint);
create table evil.workers (id bigint);
"""
EVIL_TYPES = """
create domain evil.text as pg_catalog.int4;
create domain evil.jsonb as pg_catalog.int4;
create domain evil.timestamptz as pg_catalog.int4;
"""


@contextmanager
def role(conn: Connection, name: str) -> Iterator[None]:
    """A role that is no superuser, for as long as the block."""
    quoted = sql.Identifier(name)
    conn.execute(sql.SQL("create role {} login").format(quoted))
    try:
        yield
    finally:
        conn.execute(sql.SQL("reset role"))
        conn.execute(sql.SQL("drop owned by {}").format(quoted))
        conn.execute(sql.SQL("drop role {}").format(quoted))


@pytest.fixture
def admin(blank: str) -> Iterator[Connection]:
    with psycopg.connect(blank, autocommit=True) as conn:
        yield conn


def a_days_work(conn: Connection) -> None:
    """What a producer, a worker and an operator do."""
    worker_id = jobs.register(conn, lock_key=1)
    jobs.fill(conn, 3)
    job_id = jobs.enqueue(conn, unique_key="k")
    claimed = jobs.claim(conn, worker_id, 2)
    assert jobs.finish(conn, worker_id, *claimed) == []
    assert jobs.requeue(conn, claimed[0].id) == ["requeued"]
    assert jobs.cancel(conn, job_id) == ["cancelled"]
    assert jobs.value(conn, "select alive from pgq.heartbeat(%s, 1)", worker_id)
    assert jobs.reap(conn) == {}
    late = jobs.value(conn, "select pg_catalog.now() - max(scheduled_at) from pgq.jobs")
    assert late.total_seconds() < 60


def test_an_owner_without_superuser_rights_installs_and_works(admin: Connection) -> None:
    name = f"{admin.info.dbname}_owner"
    with role(admin, name):
        admin.execute(
            sql.SQL("grant create on database {} to {}").format(
                sql.Identifier(admin.info.dbname), sql.Identifier(name)
            )
        )
        admin.execute(sql.SQL("set role {}").format(sql.Identifier(name)))
        install(admin)
        a_days_work(admin)
        assert install(admin).functions == 0


def test_a_role_that_may_not_create_is_refused(admin: Connection) -> None:
    name = f"{admin.info.dbname}_guest"
    with role(admin, name):
        admin.execute(sql.SQL("set role {}").format(sql.Identifier(name)))
        with pytest.raises(Refused, match="the database role may not do this: permission denied"):
            install(admin)


def be_hostile(admin: Connection, evil: str) -> None:
    """Make new sessions look into the schema `evil` first."""
    admin.execute(evil.encode())
    admin.execute(
        sql.SQL("alter database {} set search_path = evil, pg_catalog, public").format(
            sql.Identifier(admin.info.dbname)
        )
    )


@pytest.mark.parametrize("way", ["install", "script"])
def test_an_install_by_a_hostile_search_path_is_like_any_other(
    admin: Connection, blank: str, db: str, way: str
) -> None:
    be_hostile(admin, EVIL + EVIL_TYPES)
    with psycopg.connect(blank, autocommit=True) as conn, psycopg.connect(db) as usual:
        if way == "install":
            install(conn)
        else:
            psql(blank, migrate.script(), "--single-transaction")

        assert fingerprint(conn) == fingerprint(usual)


def test_the_functions_work_by_a_hostile_search_path(admin: Connection, blank: str) -> None:
    install(admin)
    be_hostile(admin, EVIL)

    with psycopg.connect(blank, autocommit=True) as conn:
        assert jobs.value(conn, "select now()").year == 1970
        a_days_work(conn)
