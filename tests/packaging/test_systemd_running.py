"""A worker under a real systemd, by the unit in examples/systemd."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.databases import PATIENCE, wait_until
from tests.support.jobs import enqueue
from tests.support.systemd import Systemd, booted
from tests.support.workers import PROGRAM, ROOT

UNIT = "pgq-worker@mail.service"

HOME = ("PrivateTmp=", "ProtectHome=", "WorkingDirectory=")
"""Settings that hide what the test keeps in /tmp, or in somebody's home."""

ACCOUNT = ("User=", "CapabilityBoundingSet=")
"""Settings by which the worker would not be let into the server's folder, another account's."""


HANDLERS = {"PGQ_APP": "tests.worker.handlers:app"}

HOLD = "until [ -e go ]; do sleep 0.05; done"


@pytest.fixture(scope="module")
def manager() -> Iterator[Systemd]:
    with booted() as manager:
        yield manager


@pytest.fixture
def systemd(manager: Systemd, db: str, tmp_path: Path) -> Iterator[Systemd]:
    """A manager that knows the unit, with the settings of a worker for this test's database."""
    text = (ROOT / "examples" / "systemd" / "pgq-worker@.service").read_text()
    kept = [line for line in text.splitlines() if not line.startswith(HOME + ACCOUNT)]
    unit = "\n".join(kept).replace(
        "[Service]", f"[Service]\nWorkingDirectory={ROOT}\nReadWritePaths={tmp_path}"
    )
    unit = unit.replace("/srv/app/.venv/bin/pgq", PROGRAM).replace("/etc/pgq", str(tmp_path))
    (manager.units / "pgq-worker@.service").write_text(unit)
    settings(tmp_path, db)
    assert manager.ctl("daemon-reload").returncode == 0
    yield manager
    manager.ctl("stop", UNIT)
    manager.ctl("reset-failed")


def settings(desk: Path, dsn: str, **said: object) -> None:
    said = {"PGQ_DSN": dsn, "DESK": desk, "PYTHONPATH": ROOT, **(said or HANDLERS)}
    lines = [f"{name}={json.dumps(str(value))}" for name, value in said.items()]
    (desk / "mail.env").write_text("\n".join(lines))


def test_a_started_unit_is_a_registered_worker(systemd: Systemd, db: str) -> None:
    started = systemd.ctl("start", UNIT)

    assert (started.returncode, started.stderr) == (0, "")
    with psycopg.connect(db) as conn:
        row = conn.execute("select pid from pgq.workers where stopped_at is null").fetchone()
    assert row == (int(systemd.property(UNIT, "MainPID")),)


def test_stopping_the_unit_lets_the_running_command_finish(
    systemd: Systemd, db: str, tmp_path: Path
) -> None:
    settings(tmp_path, db, PGQ_EXEC=f"cd {tmp_path}; {HOLD}")
    with psycopg.connect(db, autocommit=True) as conn:
        job_id = enqueue(conn, "hold")
        systemd.ctl("start", UNIT)
        wait_until(conn, "select status = 'running' from pgq.jobs")
        systemd.ctl("stop", "--no-block", UNIT)
        wait_until(conn, "select draining_at is not null from pgq.workers")
        assert systemd.property(UNIT, "ActiveState") == "deactivating"
        (tmp_path / "go").touch()
        wait_until(conn, "select stopped_at is not null from pgq.workers")

        ended = conn.execute("select id, status, attempts from pgq.jobs").fetchone()

    systemd.ctl("stop", UNIT)
    assert ended == (job_id, "done", 1)
    assert systemd.property(UNIT, "Result") == "success"


def test_a_killed_worker_is_started_again_and_its_job_runs_again(
    systemd: Systemd, db: str, tmp_path: Path
) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        enqueue(conn, "hold")
        systemd.ctl("start", UNIT)
        killed = int(systemd.property(UNIT, "MainPID"))
        wait_until(conn, "select status = 'running' from pgq.jobs")
        os.kill(killed, signal.SIGKILL)
        wait_until(conn, "select attempts = 2 and status = 'running' from pgq.jobs")
        (tmp_path / "go").touch()
        wait_until(conn, "select status = 'done' from pgq.jobs")

    assert int(systemd.property(UNIT, "MainPID")) not in (0, killed)
    assert int(systemd.property(UNIT, "NRestarts")) >= 1


def test_a_worker_whose_app_does_not_import_is_not_started_again(
    systemd: Systemd, db: str, tmp_path: Path
) -> None:
    settings(tmp_path, db, PGQ_APP="there.is.none:app")

    started = systemd.ctl("start", UNIT)

    assert started.returncode != 0
    assert systemd.property(UNIT, "ExecMainStatus") == "2"
    assert systemd.property(UNIT, "ActiveState") == "failed"


def test_a_worker_that_finds_no_database_is_started_until_it_does(
    systemd: Systemd, db: str, tmp_path: Path
) -> None:
    settings(tmp_path, "host=127.0.0.1 port=9 dbname=nothing")
    systemd.ctl("start", "--no-block", UNIT)
    until(lambda: int(systemd.property(UNIT, "NRestarts")) >= 1)
    settings(tmp_path, db)

    with psycopg.connect(db, autocommit=True) as conn:
        wait_until(conn, "select exists (select from pgq.workers)")


def until(true: Callable[[], bool]) -> None:
    """Return once it is so."""
    late = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < late
        time.sleep(0.05)
