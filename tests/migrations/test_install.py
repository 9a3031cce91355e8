"""Installing: once, again, two at once, and what is refused with nothing changed."""

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from pgq import _sql, migrate
from pgq.db import check_schema
from pgq.errors import PgqError, Refused, SchemaMismatch
from pgq.migrate import Installed, install
from tests.support import jobs
from tests.support.catalog import fingerprint
from tests.support.databases import wait_until_blocked
from tests.support.psql import psql

VERSION = _sql.migrations()[-1].number
FILES = (
    "select name, checksum from pgq.migrations union all select name, checksum from pgq.functions"
)


def installed(dsn: str) -> Installed:
    with psycopg.connect(dsn, autocommit=True) as conn:
        return install(conn)


def state(dsn: str) -> tuple[list[str], list[tuple[object, ...]]]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        return fingerprint(conn), sorted(conn.execute(FILES).fetchall())


def test_an_install_applies_every_file_once(blank: str) -> None:
    first = installed(blank)
    before = state(blank)

    second = installed(blank)

    assert first == Installed(VERSION, len(_sql.migrations()), len(_sql.functions()))
    assert second == Installed(VERSION, 0, 0)
    assert state(blank) == before


def test_a_function_that_changed_is_replaced_and_no_other(db: str) -> None:
    before = state(db)
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("update pgq.functions set checksum = 'old' where name = 'backoff'")
        conn.execute(
            "create or replace function pgq.backoff(p_attempts integer) returns interval"
            " language sql return interval '1 second'"
        )

    assert installed(db) == Installed(VERSION, 0, 1)
    assert state(db) == before


def test_the_installed_schema_is_the_one_the_program_wants(blank: str) -> None:
    with psycopg.connect(blank, autocommit=True) as conn:
        with pytest.raises(SchemaMismatch, match="not installed") as missing:
            check_schema(conn)
        assert (missing.value.found, missing.value.needed) == (None, VERSION)
        install(conn)
        check_schema(conn)


def test_installs_at_the_same_time_wait_for_one_another(blank: str) -> None:
    with ThreadPoolExecutor() as threads:
        results = list(threads.map(installed, [blank] * 4))

    assert sorted(result.migrations for result in results) == [0, 0, 0, len(_sql.migrations())]
    assert {result.version for result in results} == {VERSION}


def test_the_second_installer_sees_what_the_first_one_did_whatever_the_default_isolation(
    blank: str,
) -> None:
    with psycopg.connect(blank, autocommit=True) as conn:
        name = conn.info.dbname
        conn.execute(
            f"alter database {name} set default_transaction_isolation = serializable".encode()
        )
    first = psycopg.connect(blank, autocommit=True)
    second = psycopg.connect(blank, autocommit=True)
    with first, second:
        with first.transaction():
            first.execute("set transaction isolation level read committed")
            first.execute("select pg_advisory_xact_lock(%s)", (migrate._LOCK_KEY,))
            waiting = threading.Thread(target=install, args=(second,))
            waiting.start()
            wait_until_blocked(blank, second.info.backend_pid)
            assert install(first).migrations == len(_sql.migrations())
        waiting.join()

    assert installed(blank) == Installed(VERSION, 0, 0)


@pytest.mark.parametrize(
    "foreign",
    [
        "create schema pgq",
        "create schema pgq; create table pgq.queue (id integer)",
        "create schema pgq; create table pgq.migrations (version integer)",
        (
            "create schema pgq; create table pgq.jobs (id integer); create table public.migrations"
            " (number integer, name text, checksum text)"
        ),
    ],
)
def test_a_schema_pgq_that_is_not_ours_is_refused_and_left_alone(blank: str, foreign: str) -> None:
    with psycopg.connect(blank, autocommit=True) as conn:
        conn.execute(foreign.encode())
        before = fingerprint(conn), fingerprint(conn, "public")

        with pytest.raises(Refused, match="a schema pgq that is not ours"):
            install(conn)

        assert (fingerprint(conn), fingerprint(conn, "public")) == before


def test_a_newer_schema_is_refused_and_left_alone(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("insert into pgq.migrations values (%s, 'future', 'x')", (VERSION + 1,))
        conn.execute("update pgq.functions set checksum = 'newer'")
    before = state(db)

    with pytest.raises(SchemaMismatch, match="newer than this program") as refused:
        installed(db)

    assert (refused.value.found, refused.value.needed) == (VERSION + 1, VERSION)
    assert state(db) == before


def test_a_migration_that_was_changed_after_it_was_applied_is_refused(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("update pgq.migrations set checksum = 'other' where number = 1")
        conn.execute("update pgq.functions set checksum = 'other'")
    before = state(db)

    with pytest.raises(PgqError, match="migration 0001_initial was changed"):
        installed(db)

    assert state(db) == before


def test_the_printed_script_makes_the_same_schema(blank: str, db: str) -> None:
    psql(blank, migrate.script(), "--single-transaction")

    assert state(blank) == state(db)
    assert installed(blank) == Installed(VERSION, 0, 0)


def test_the_printed_script_does_nothing_to_an_installed_schema(db: str) -> None:
    before = state(db)

    with pytest.raises(AssertionError, match="already exists"):
        psql(db, migrate.script(), "--single-transaction")

    assert state(db) == before


def test_an_install_leaves_the_jobs_alone(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        worker_id = jobs.register(conn)
        jobs.fill(conn, 2)
        job = jobs.claim_one(conn, worker_id)
        conn.execute("update pgq.functions set checksum = 'old'")
        before = jobs.rows(conn, "select * from pgq.jobs order by id")

        assert install(conn).functions == len(_sql.functions())

        assert jobs.rows(conn, "select * from pgq.jobs order by id") == before
        assert jobs.finish(conn, worker_id, job) == []
