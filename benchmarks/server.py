"""The server that the benchmarks load: PGQ_BENCH_DSN, else a private one, gone afterwards.

The private one has the settings of a fresh PostgreSQL: every commit is synced to disk.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgq import embedded, migrate
from pgq.db import connect


@contextmanager
def server() -> Iterator[str]:
    """The DSN of a server on which databases may be made."""
    given = os.environ.get("PGQ_BENCH_DSN")
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="pgq-bench-", dir="/var/tmp") as home:
        Path(home).chmod(0o711)  # run by root, the server has an account of its own
        os.environ["PGQ_SERVER_HOME"] = home
        dsn = embedded.ensure()
        try:
            yield dsn
        finally:
            embedded.stop()


@contextmanager
def database(admin: str, name: str) -> Iterator[str]:
    """The DSN of a fresh database with the schema `pgq` in it."""
    identifier = sql.Identifier(name)
    with psycopg.connect(admin, autocommit=True) as conn:
        conn.execute(sql.SQL("drop database if exists {} with (force)").format(identifier))
        conn.execute(sql.SQL("create database {}").format(identifier))
    dsn = make_conninfo(admin, dbname=name)
    with connect(dsn) as conn:
        migrate.install(conn)
    yield dsn
    with psycopg.connect(admin, autocommit=True) as conn:
        conn.execute(sql.SQL("drop database if exists {} with (force)").format(identifier))
