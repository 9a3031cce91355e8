"""Installing and upgrading the schema: migrations once, functions whenever their text changed."""

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from pgq import _sql
from pgq.db import driver_errors
from pgq.errors import PgqError, Refused, SchemaMismatch

_LOCK_KEY = 0x706771_696E7374
"""The advisory lock that serialises installers ("pgqinst")."""

_BOOTSTRAP = """\
create schema if not exists pgq;
create table if not exists pgq.migrations (
    number integer not null,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now(),
    constraint migrations_pkey primary key (number)
);
create table if not exists pgq.functions (
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now(),
    constraint functions_pkey primary key (name)
);
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """What an install did: the schema's version, and how many files it applied."""

    version: int
    migrations: int
    functions: int


def install(conn: psycopg.Connection[Any]) -> Installed:
    """Bring the schema `pgq` to this program's version, in one transaction; safe to repeat.

    Two at once are serialised. Refused: a schema `pgq` that is not ours. SchemaMismatch: one that
    is newer than this program.
    """
    with driver_errors(), conn.transaction():
        # The second of two installers must see what the first one committed.
        conn.execute("set transaction isolation level read committed")
        # Names in defaults, checks and SQL-standard bodies are resolved now, for good.
        conn.execute("set local search_path = ''")
        conn.execute("set local lock_timeout = '30s'")
        conn.execute("set local check_function_bodies = off")
        conn.execute("set local client_min_messages = warning")
        conn.execute("select pg_advisory_xact_lock(%s)", (_LOCK_KEY,))
        _refuse_foreign_schema(conn)
        conn.execute(_BOOTSTRAP)
        migrated = _apply_migrations(conn)
        replaced = _apply_functions(conn)
    return Installed(_sql.migrations()[-1].number, migrated, replaced)


def script() -> str:
    """The SQL of a fresh install, for those who run it themselves (psql -1 -f ...)."""
    parts = ["-- pgq: run in one transaction (psql -1 -v ON_ERROR_STOP=1 -f FILE).\n"]
    parts.append("set local search_path = '';\nset local check_function_bodies = off;\n")
    parts.append(_BOOTSTRAP.replace(" if not exists", ""))
    for file in _sql.migrations():
        parts.append(file.text)
        parts.append(_record("migrations", file).as_string() + ";\n")
    for file in _sql.functions():
        parts.append(file.text)
        parts.append(_record("functions", file).as_string() + ";\n")
    return "\n".join(parts)


def _refuse_foreign_schema(conn: psycopg.Connection[Any]) -> None:
    row = conn.execute(
        "select exists (select from pg_catalog.pg_namespace where nspname = 'pgq'),"
        " to_regclass('pgq.migrations') is not null and exists ("
        "  select from pg_catalog.pg_attribute"
        "  where attrelid = to_regclass('pgq.migrations') and attname = 'checksum')"
    ).fetchone()
    if row == (True, False):
        raise Refused(
            "this database has a schema pgq that is not ours (it has no table pgq.migrations of "
            "this project): nothing was changed; use another database"
        )


def _apply_migrations(conn: psycopg.Connection[Any]) -> int:
    known = _sql.migrations()
    applied = dict(conn.execute("select number, checksum from pgq.migrations").fetchall())
    if applied and max(applied) > known[-1].number:
        raise SchemaMismatch(found=max(applied), needed=known[-1].number)
    missing = 0
    for file in known:
        if file.number not in applied:
            conn.execute(sql.SQL(file.text))
            conn.execute(_record("migrations", file))
            missing += 1
        elif applied[file.number] != file.checksum:
            raise PgqError(
                f"migration {file.name} was changed after it was applied to this database: "
                "install the program version that applied it, or use a fresh database"
            )
    return missing


def _apply_functions(conn: psycopg.Connection[Any]) -> int:
    applied = dict(conn.execute("select name, checksum from pgq.functions").fetchall())
    there = {
        name
        for (name,) in conn.execute(
            "select proname from pg_catalog.pg_proc where pronamespace = 'pgq'::regnamespace"
        )
    }
    changed = [
        file
        for file in _sql.functions()
        if applied.get(file.name) != file.checksum or file.name not in there
    ]
    for file in changed:
        conn.execute(sql.SQL(file.text))
        conn.execute(_record("functions", file))
    return len(changed)


def _record(table: str, file: _sql.SqlFile) -> sql.Composed:
    if table == "migrations":
        return sql.SQL(
            "insert into pgq.migrations (number, name, checksum) values ({}, {}, {})"
        ).format(file.number, file.name, file.checksum)
    return sql.SQL(
        "insert into pgq.functions (name, checksum) values ({}, {})"
        " on conflict (name) do update set checksum = excluded.checksum, applied_at = now()"
    ).format(file.name, file.checksum)
