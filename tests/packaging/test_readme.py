"""The README is run as it is written: every command, every block of SQL and Python."""

import json
import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from signal import SIGTERM
from typing import NamedTuple

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.support.workers import starting

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DSN = "postgresql:///shop"
PATIENCE = 60.0


class Block(NamedTuple):
    """A fenced block: its language and its text."""

    language: str
    text: str


BLOCKS = [
    Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
]
HANDLERS = next(block.text for block in BLOCKS if block.text.startswith("# tasks.py"))


def commands() -> Iterator[str]:
    """Every command line of the shell blocks, without its comment."""
    for block in BLOCKS:
        if block.language == "sh":
            for line in block.text.splitlines():
                yield line.split("    # ")[0].split("  # ")[0].strip()


PROGRAM = [command for command in commands() if command.startswith(("pgq", "psql"))]


@pytest.fixture
def shop(db: str, tmp_path: Path) -> str:
    """A database with what the README takes for granted: orders, handlers, a job 7, a file."""
    (tmp_path / "tasks.py").write_text(HANDLERS)
    line = {"kind": "send_email", "payload": {"to": "a@example.org"}}
    (tmp_path / "jobs.jsonl").write_text(json.dumps(line) + "\n")
    with psycopg.connect(db) as conn:
        conn.execute("create table public.orders (id bigint, email text)")
        conn.execute(
            "insert into pgq.jobs (id, kind, status, finished_at, last_error)"
            " values (7, 'send_email', 'failed', now(), 'boom')"
        )
        conn.execute("select setval('pgq.jobs_id_seq', 7)")
    return make_conninfo(db, options="-c search_path=public")


def shell(command: str, dsn: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command line in a shell that finds the `pgq` of this environment."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PGQ_DSN": dsn}
    return subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_the_commands_work_as_written_one_after_the_other(shop: str, tmp_path: Path) -> None:
    tried = [command for command in PROGRAM if not command.startswith("pgq worker ")]
    assert len(tried) >= 10

    for command in tried:
        ended = shell(command.replace('"$(pgq server url)"', shlex.quote(shop)), shop, tmp_path)
        assert ended.returncode == 0, f"{command}: {ended.stderr}"
        assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "command", [command for command in PROGRAM if command.startswith("pgq worker ")]
)
def test_a_worker_starts_and_stops_as_written(command: str, shop: str, tmp_path: Path) -> None:
    arguments = shlex.split(command)[2:]
    with starting(shop, {"PYTHONPATH": str(tmp_path)}) as workers:
        worker = workers.start(*arguments)
        worker.seen("worker started")
        if "--drain" not in arguments:
            worker.send(SIGTERM)
        assert worker.ended() == 0


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "sql"])
def test_a_block_of_sql_runs_as_written(block: Block, shop: str) -> None:
    with psycopg.connect(shop) as conn:
        conn.execute(block.text.encode())


def test_the_blocks_of_python_run_as_written(shop: str, tmp_path: Path) -> None:
    enqueue = next(
        block.text for block in BLOCKS if block.language == "python" and DSN in block.text
    )
    script = tmp_path / "enqueue.py"
    script.write_text(enqueue.replace(f'"{DSN}"', repr(shop)))

    with starting(shop, {"PYTHONPATH": str(tmp_path)}) as workers:
        worker = workers.start("--app", "tasks:app")
        worker.seen("worker started")
        ended = shell(f"{shlex.quote(sys.executable)} enqueue.py", shop, tmp_path)
        worker.send(SIGTERM)
        assert worker.ended() == 0

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "{'sent': 'a@example.org'}\n"


def test_the_files_that_the_readme_names_are_there() -> None:
    for name in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / name).is_file(), name
    for script in ("demo.sh", "check.sh"):
        assert f"./{script}" in README
        assert (ROOT / script).stat().st_mode & stat.S_IXUSR
