"""Databases on the test server: made, cloned, dropped, and waited on."""

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

PATIENCE = 20.0


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server on which a test process makes databases of its own."""

    dsn: str
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @contextmanager
    def database(self, *, template: str | None = None) -> Iterator[str]:
        """The DSN of a new database, dropped afterwards, connections to it included.

        Its search path is empty, so that a name that lacks its schema fails.
        """
        name = f"pgq_test_{os.getpid()}_{next(self._numbers)}"
        create = sql.SQL("create database {} template {} strategy file_copy")
        source = sql.Identifier(template or "template0")
        with psycopg.connect(self.dsn, autocommit=True) as admin:
            admin.execute(create.format(sql.Identifier(name), source))
            admin.execute(
                sql.SQL("alter database {} set search_path = ''").format(sql.Identifier(name))
            )
        try:
            yield make_conninfo(self.dsn, dbname=name)
        finally:
            with psycopg.connect(self.dsn, autocommit=True) as admin:
                admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def row_counts(conn: psycopg.Connection) -> dict[str, int]:
    """How many rows each table of the schema `pgq` has."""
    tables = conn.execute(
        "select c.relname from pg_catalog.pg_class as c"
        " where c.relnamespace = 'pgq'::regnamespace and c.relkind in ('r', 'p') order by 1"
    ).fetchall()
    count = sql.SQL("select count(*) from {}")
    counts = {}
    for (table,) in tables:
        row = conn.execute(count.format(sql.Identifier("pgq", table))).fetchone()
        assert row is not None
        counts[table] = row[0]
    return counts


def empty(conn: psycopg.Connection, pristine: dict[str, int]) -> None:
    """Remove every row from the tables that have none in a pristine database."""
    tables = [sql.Identifier("pgq", table) for table, rows in pristine.items() if not rows]
    conn.execute(sql.SQL("truncate {}").format(sql.SQL(", ").join(tables)))


def wait_until_blocked(dsn: str, pid: int) -> None:
    """Return once the backend `pid` waits for a lock that another one holds."""
    with psycopg.connect(dsn, autocommit=True) as observer:
        wait_until(observer, "select cardinality(pg_catalog.pg_blocking_pids(%s)) > 0", pid)


def wait_until(conn: psycopg.Connection, question: LiteralString, *params: object) -> None:
    """Return once the database answers the question with true.

    Raises TimeoutError when it does not come to that.
    """
    deadline = time.monotonic() + PATIENCE
    while conn.execute(question, params).fetchone() != (True,):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not so within {PATIENCE:g} s: {question} {params}")
        conn.execute("select pg_catalog.pg_sleep(0.005)")
