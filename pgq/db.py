"""Connections, and the one place that speaks to the driver: DSNs, running calls, driver errors.

Nothing here knows what a statement means, and nothing above here catches a psycopg error.
"""

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import tuple_row
from psycopg.types.json import set_json_loads

from pgq import _sql
from pgq.calls import Call
from pgq.calls.queues import schema_version
from pgq.errors import (
    Conflict,
    ConnectionLost,
    PgqError,
    Refused,
    SchemaMismatch,
    Unavailable,
    UsageError,
    WorkerDead,
)
from pgq.text import read_json, safe

T = TypeVar("T")

AnyConnection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]

LIBPQ_VARIABLES = ("PGSERVICE", "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER")

UNREADABLE = (
    "the DSN cannot be read: write it like postgresql://user@host:5432/dbname "
    "or host=... dbname=..., with special characters in a URL percent-encoded"
)

WATCHFUL = {
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
"""What makes a connection whose other end vanished without a word end after about 15 seconds."""

_QUEUE = "queue: give 1 to 200 characters"
_MAX_ATTEMPTS = "max_attempts: give a number from 1 to 1000000"
_TIMEOUT = "timeout: give a duration above 0 and at most 3650 days"
_CONSTRAINTS = {
    "jobs_queue": _QUEUE,
    "kinds_queue": _QUEUE,
    "jobs_kind": "kind: give 1 to 200 characters",
    "jobs_unique_key_length": "unique key: give 1 to 500 characters",
    "jobs_payload": "payload: must be a JSON object",
    "jobs_payload_size": (
        "payload: larger than the database allows (pgq.max_payload_bytes, by default 1048576 "
        "bytes): store the data elsewhere and enqueue a reference to it"
    ),
    "jobs_max_attempts": _MAX_ATTEMPTS,
    "kinds_max_attempts": _MAX_ATTEMPTS,
    "jobs_scheduled_at": "scheduled_at: give a time between the years 1900 and 9998",
    "jobs_timeout": _TIMEOUT,
    "kinds_timeout": _TIMEOUT,
    "jobs_shard": "shard: must be 0",
    "queues_visibility_timeout": (
        "visibility timeout: give at least 10 seconds, since a worker shows every 2 that it lives"
    ),
}


def resolve_dsn(explicit: str | None, environ: Mapping[str, str] | None = None) -> str | None:
    """Which database: the given DSN, PGQ_DSN, DATABASE_URL, libpq's own variables ("" then).

    None if nothing names one.
    """
    env = os.environ if environ is None else environ
    for dsn in (explicit, env.get("PGQ_DSN"), env.get("DATABASE_URL")):
        if dsn:
            return dsn
    return "" if any(env.get(name) for name in LIBPQ_VARIABLES) else None


def conninfo(
    dsn: str, *, application_name: str, connect_timeout: int = 10, insist: bool = False
) -> str:
    """A connection string with our defaults added; UsageError if the DSN cannot be read.

    `insist`: the application_name is ours, whatever the DSN and PGAPPNAME say.
    """
    try:
        given = conninfo_to_dict(dsn)
    except psycopg.Error:
        # libpq's message quotes the DSN, and the DSN may hold a password.
        raise UsageError(UNREADABLE) from None
    _refuse_odd(given)
    if insist or ("application_name" not in given and not os.environ.get("PGAPPNAME")):
        given["application_name"] = application_name
    if "connect_timeout" not in given and not os.environ.get("PGCONNECT_TIMEOUT"):
        given["connect_timeout"] = str(connect_timeout)
    for name, value in WATCHFUL.items():
        given.setdefault(name, value)
    given["client_encoding"] = "utf8"
    return make_conninfo("", **given)


def _refuse_odd(given: Mapping[str, object]) -> None:
    """Refuse a URL whose password has a special character that is not encoded.

    Its parts land in the wrong places, and would be shown there.
    """
    ports = str(given.get("port") or "0").split(",")
    if not all(port.strip().isdigit() or not port for port in ports) or "@" in str(
        given.get("host") or ""
    ) + str(given.get("dbname") or ""):
        raise UsageError(UNREADABLE)


def describe(dsn: str) -> str:
    """Which database a DSN names, without its secrets."""
    try:
        given = conninfo_to_dict(dsn)
    except psycopg.Error:
        return "an unreadable DSN"
    service = given.get("service") or os.environ.get("PGSERVICE")
    if service:
        return f"service {service}"
    host = given.get("host") or os.environ.get("PGHOST") or "the local socket"
    port = given.get("port") or os.environ.get("PGPORT") or "5432"
    database = given.get("dbname") or os.environ.get("PGDATABASE") or "the default database"
    return safe(f"{database} at {host}:{port}")


def connect(
    dsn: str,
    *,
    application_name: str = "pgq",
    connect_timeout: int = 10,
    insist: bool = False,
) -> psycopg.Connection[Any]:
    """Open a connection in autocommit mode; Unavailable if there is none to be had.

    It prepares nothing by itself: through a pooler the next statement may run in another session.
    """
    info = conninfo(
        dsn, application_name=application_name, connect_timeout=connect_timeout, insist=insist
    )
    with connect_errors(dsn):
        conn = psycopg.connect(info, autocommit=True, prepare_threshold=None)
    set_json_loads(read_json, conn)
    return conn


async def connect_async(
    dsn: str, *, application_name: str, insist: bool = False
) -> psycopg.AsyncConnection[Any]:
    """The same, async."""
    info = conninfo(dsn, application_name=application_name, insist=insist)
    with connect_errors(dsn):
        conn = await psycopg.AsyncConnection.connect(info, autocommit=True, prepare_threshold=None)
    set_json_loads(read_json, conn)
    return conn


@contextmanager
def connect_errors(dsn: str) -> Iterator[None]:
    """Make a failed connection attempt an Unavailable that says which database."""
    try:
        yield
    except psycopg.Error as error:
        reason = safe(_first_line(error).removeprefix("connection failed: "))
        raise Unavailable(
            f"cannot connect to {describe(dsn)}: {reason or 'no reason given'}: "
            "check the DSN, the password, and that the server runs"
        ) from None


def cut(conn: AnyConnection) -> None:
    """Break this connection beneath whoever waits for an answer on it, in any thread or task.

    The wait ends with ConnectionLost. It is for a server that does not answer: a half-open
    connection looks healthy to the kernel, and the driver waits on it for ever.
    """
    with (
        contextlib.suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(conn.fileno())) as shared,
    ):
        shared.shutdown(socket.SHUT_RDWR)


def run(conn: psycopg.Connection[Any], call: Call[T]) -> T:
    """Run a call on this connection and read its answer."""
    # A cursor of our own, since the application's connection may make ones with other rows or
    # parameters; and binary answers, which no DateStyle or IntervalStyle changes.
    with driver_errors(), psycopg.Cursor(conn, row_factory=tuple_row) as cursor:
        cursor.execute(statement(call.name), call.params, binary=True)
        return call.read(cursor.fetchall())


async def run_async(conn: psycopg.AsyncConnection[Any], call: Call[T]) -> T:
    """Run a call on this async connection and read its answer."""
    with driver_errors():
        async with psycopg.AsyncCursor(conn, row_factory=tuple_row) as cursor:
            await cursor.execute(statement(call.name), call.params, binary=True)
            return call.read(await cursor.fetchall())


def read_statements() -> None:
    """Read all statements now, for a process that runs for long."""
    _sql.read_queries()


def statement(name: str) -> sql.SQL:
    """The text of a query file, as the driver wants it."""
    # The text comes from our own files, never from a user.
    return sql.SQL(cast("Any", _sql.query(name)))


def check_schema(conn: psycopg.Connection[Any]) -> None:
    """Raise SchemaMismatch unless the schema in the database is the one this program needs."""
    require_schema(run(conn, schema_version()))


def require_schema(found: int | None) -> None:
    """Raise SchemaMismatch unless this is the version that this program needs."""
    needed = _sql.migrations()[-1].number
    if found != needed:
        raise SchemaMismatch(found=found, needed=needed)


@contextmanager
def driver_errors() -> Iterator[None]:
    """Make psycopg's errors ours, once, here."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the connection's encoding {error.encoding} cannot read what is stored: "
            "set its client_encoding to UTF8"
        ) from None
    except UnicodeEncodeError as error:
        character = safe(error.object[error.start])
        raise UsageError(
            f"the connection's encoding {error.encoding} has no {character}: "
            "set its client_encoding to UTF8"
        ) from None


def translate(error: psycopg.Error) -> PgqError:
    """The error of ours that says what a driver error means to the one who must act."""
    state = error.sqlstate or ""
    line = safe(_first_line(error))
    if not state:
        return _without_state(error, line)
    if state in ("42P01", "3F000", "42883") and "pgq" in line:
        return SchemaMismatch(found=None, needed=_sql.migrations()[-1].number)
    if state == "23514":
        constraint = error.diag.constraint_name or ""
        return UsageError(_CONSTRAINTS.get(constraint, f"refused by {constraint}: {line}"))
    if state == "42501":
        return Refused(f"the database role may not do this: {line}")
    if state in ("40001", "40P01", "55P03", "57014"):
        return Conflict(f"another transaction came between: {line}: run your transaction again")
    if state == "PGQ01":
        return WorkerDead(line)
    if state[:2] in ("22", "54"):
        return UsageError(f"refused by the database: {line}")
    if state == "25006":  # a standby, or default_transaction_read_only: nothing was done
        return Unavailable(f"the database takes no writes now: {line}")
    if state[:3] == "57P" or state[:2] in ("08", "53", "58"):
        return ConnectionLost(f"the database is not available: {line}")
    return PgqError(f"the database refused: {line} (SQLSTATE {state})")


def _without_state(error: psycopg.Error, line: str) -> PgqError:
    """The same for what did not come from the server."""
    match error:
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return ConnectionLost(f"the connection to the database broke: {line}")
        case psycopg.DataError() | psycopg.ProgrammingError():
            return UsageError(f"refused before it was sent: {line}")
        case _:
            return PgqError(f"the driver refused: {line}")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
