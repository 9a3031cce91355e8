"""The command line, run in a process of its own (`pgq`) or, where only its text counts, here."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from pgq_cli import app

PATIENCE = 60.0
"""Seconds after which a command that does not end is killed, and its test fails."""

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAM = "import sys; from pgq_cli.app import main; sys.exit(main())"
AT = datetime(2030, 1, 31, 8, tzinfo=UTC)
"""When the fixed jobs were enqueued."""


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str


class Run(Protocol):
    """Runs the command line to its end."""

    def __call__(
        self,
        *arguments: str | bytes,
        dsn: str | None = None,
        stdin: bytes | str = b"",
        cwd: Path | None = None,
        **environment: str,
    ) -> Ended: ...


@pytest.fixture
def pgq(tmp_path: Path) -> Run:
    """The command line in a new process, in an empty directory, without a terminal."""

    def run(
        *arguments: str | bytes,
        dsn: str | None = None,
        stdin: bytes | str = b"",
        cwd: Path | None = None,
        **environment: str,
    ) -> Ended:
        done = subprocess.run(
            command(*arguments),
            check=False,
            capture_output=True,
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            cwd=cwd or tmp_path,
            timeout=PATIENCE,
            env=variables(dsn, **environment),
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


def command(*arguments: str | bytes) -> list[str | bytes]:
    """The command line as a program to start; `-P`: it does not find modules by accident."""
    return [sys.executable, "-P", "-W", "error", "-c", PROGRAM, *arguments]


def variables(dsn: str | None, **more: str) -> dict[str, str]:
    """Our environment, with the checkout to be found and the database named."""
    named = {} if dsn is None else {"PGQ_DSN": dsn}
    path = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **named, **more}


Here = Callable[..., Ended]


@pytest.fixture
def here(shared: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """The command line in this process, on the shared database: quick, for what it prints."""

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["pgq", "--dsn", shared, *arguments])
        capsys.readouterr()
        code = app.main()
        printed = capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    return run


@pytest.fixture
def session(shared: str) -> Iterator[psycopg.Connection]:
    """A session in the shared database, in autocommit mode."""
    with psycopg.connect(shared, autocommit=True) as conn:
        yield conn


def add_job(conn: psycopg.Connection, job_id: int, **columns: Any) -> None:
    """Put a job into the table as it is wanted, an hour after the one before it."""
    at = AT + timedelta(hours=job_id)
    row: dict[str, Any] = {
        "id": job_id, "kind": "send_email", "created_at": at, "updated_at": at, "scheduled_at": at,
    } | columns  # fmt: skip
    if row.get("status") in ("done", "failed", "cancelled"):
        row.setdefault("finished_at", at)
    if row.get("status") == "running":
        row.setdefault("lease", job_id)
    names = ", ".join(row)
    values = [Jsonb(value) if isinstance(value, dict) else value for value in row.values()]
    places = ", ".join(["%s"] * len(row))
    conn.execute(f"insert into pgq.jobs ({names}) values ({places})".encode(), values)


def add_worker(
    conn: psycopg.Connection, worker_id: int, *, silence: float = 0, **columns: Any
) -> None:
    """Put a worker into the table that beat so many seconds ago."""
    row: dict[str, Any] = {
        "id": worker_id, "host": "web-1", "pid": 4711, "version": "1.0", "queues": ["mail"],
        "concurrency": 10,
    } | columns  # fmt: skip
    names = ", ".join(row)
    places = ", ".join(["%s"] * len(row))
    conn.execute(
        f"insert into pgq.workers (beat_at, {names}) overriding system value"
        f" values (now() - make_interval(secs => %s), {places})".encode(),
        [silence, *row.values()],
    )


@contextmanager
def reader(dsn: str) -> Iterator[str]:
    """The DSN of a role that may read everything of the schema, and change nothing."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        name = f"{conn.info.dbname}_reader"
        quoted = sql.Identifier(name)
        conn.execute(sql.SQL("create role {}").format(quoted))
        conn.execute(sql.SQL("grant usage on schema pgq to {}").format(quoted))
        conn.execute(sql.SQL("grant select on all tables in schema pgq to {}").format(quoted))
        try:
            yield make_conninfo(dsn, options=f"-c role={name}")
        finally:
            conn.execute(sql.SQL("drop owned by {}").format(quoted))
            conn.execute(sql.SQL("drop role {}").format(quoted))
