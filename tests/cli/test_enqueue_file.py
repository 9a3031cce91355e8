"""`pgq enqueue --file`: many jobs, or none."""

import json
import os
import pty
import re
from pathlib import Path

import psycopg
import pytest

from tests.cli.conftest import CHECKOUT, Here, Run, command, variables
from tests.support.processes import run_python


def count(conn: psycopg.Connection) -> int:
    (found,) = conn.execute("select count(*) from pgq.jobs").fetchall()
    return int(found[0])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Jobs as editors and other systems write them: a byte order mark, CRs, empty lines."""
    path = tmp_path / "jobs.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"kind": "a", "payload": {"n": 1}}\r\n'
        b"\r\n"
        b'{"kind": "b", "queue": "mail", "priority": 5, "scheduled_at": "2030-01-31T08:00:00Z"}\n'
        b'{"payload": {"type": "c"}, "max_attempts": 9, "timeout": "90s", "unique_key": "u"}\n'
        b'{"kind": "d", "unique_key": "u"}\n'
        b"\n"
    )
    return path


def test_every_line_is_a_job(file: Path, session: psycopg.Connection, here: Here) -> None:
    ended = here("enqueue", "--file", str(file), "--queue", "slow", "--max-attempts", "2")
    assert (ended.code, ended.out) == (0, "enqueued 3, duplicates 1\n")
    assert ended.err.startswith("pgq: 4 jobs in ")
    rows = session.execute(
        "select kind, queue, priority, max_attempts, timeout::text, unique_key"
        " from pgq.jobs order by kind"
    ).fetchall()
    assert rows == [
        ("a", "slow", 0, 2, None, None),
        ("b", "mail", 5, 2, None, None),
        ("c", "slow", 0, 9, "00:01:30", "u"),
    ]


def test_the_kind_is_a_default_too(session: psycopg.Connection, pgq: Run, shared: str) -> None:
    lines = '{"payload": {"n": 1}}\n{"kind": "b"}\n{"payload": {"type": "c"}}\n'
    assert pgq("enqueue", "a", "--file", "-", dsn=shared, stdin=lines).code == 0
    kinds = session.execute("select kind from pgq.jobs order by id").fetchall()
    assert kinds == [("a",), ("b",), ("a",)]


def test_bad_lines_are_named_and_nothing_is_enqueued(
    shared: str, session: psycopg.Connection, pgq: Run
) -> None:
    good = b'{"kind": "a"}\n' * 6000
    bad = (
        b"nope\n"
        b'{"kind": "a", "payload": {"s": "x\\u0000"}}\n'
        b'{"kind": "a", "payload": {"s": "\\ud800"}}\n'
        b'{"kind": "a", "payload": {"x": NaN}}\n'
        b'{"kind": "a", "payload": [1]}\n'
        b'{"kind": "", "payload": {}}\n'
        b'{"kind": "a", "queue": 7}\n'
        b'{"kind": "a", "colour": "red"}\n'
        b'{"kind": "a", "priority": 1e9}\n'
        b'{"kind": "a", "max_attempts": 0}\n'
        b'{"kind": "a", "scheduled_at": "2030-01-31T08:00:00"}\n'
        b"\xff\n"
    )
    ended = pgq("enqueue", "--file", "-", dsn=shared, stdin=good + bad + good)
    assert (ended.code, ended.out) == (2, "")
    assert [line.split(": ")[1:3] for line in ended.err.splitlines()[:-1]] == [
        ["line 6001", "not JSON"],
        ["line 6002", "payload"],
        ["line 6003", "payload"],
        ["line 6004", "payload"],
        ["line 6005", "payload"],
        ["line 6006", "kind"],
        ["line 6007", "queue"],
        ["line 6008", "unknown field 'colour'"],
        ["line 6009", "priority"],
        ["line 6010", "max_attempts"],
        ["line 6011", "time '2030-01-31T08:00:00' has no zone"],
        ["line 6012", "not UTF-8 text at byte 1"],
    ]
    assert ended.err.splitlines()[-1].startswith("pgq: 12 of 12012 lines are no jobs: nothing was")
    assert count(session) == 0


def test_only_the_first_bad_lines_are_named_and_the_others_counted(shared: str, pgq: Run) -> None:
    ended = pgq("enqueue", "--file", "-", dsn=shared, stdin=b"nope\n" * 1000)
    lines = ended.err.splitlines()
    assert lines[19].startswith("pgq: line 20: ")
    (summary,) = lines[20:]
    assert summary.startswith("pgq: 1000 of 1000 lines are no jobs: nothing was enqueued")


def test_what_only_the_database_refuses_names_the_lines_and_nothing_is_enqueued(
    db: str, pgq: Run
) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("alter table pgq.jobs add constraint jobs_no_b check (kind <> 'b')")
        lines = b'{"kind": "a"}\n' * 7000 + b'{"kind": "b"}\n'
        ended = pgq("enqueue", "--file", "-", dsn=db, stdin=lines)
        assert ended.code == 2
        assert ended.err.startswith("pgq: lines 5001 to 7001: refused by jobs_no_b")
        assert count(conn) == 0


def test_the_limit_of_the_database_holds_for_files(db: str, pgq: Run) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute(f"alter database {conn.info.dbname} set pgq.max_payload_bytes = 1000".encode())
    lines = "".join(
        json.dumps({"kind": "a", "payload": {"s": "x" * size}}) + "\n"
        for size in (900, 1100, 10**6)
    )
    ended = pgq("enqueue", "--file", "-", dsn=db, stdin=lines)
    assert ended.code == 2
    assert ended.err.splitlines()[:-1] == [
        "pgq: line 2: payload: 1109 bytes, and this database allows 1000",
        "pgq: line 3: longer than any job can be",
    ]


def test_an_empty_file_is_no_error(here: Here, tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"\n\n")
    ended = here("enqueue", "--file", str(tmp_path / "empty"))
    assert (ended.code, ended.out) == (0, "enqueued 0, duplicates 0\n")


def test_a_load_takes_little_memory_whatever_its_size(shared: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs"
    file.write_text(120 * (json.dumps({"kind": "a", "payload": {"s": "x" * 450_000}}) + "\n"))
    code = f"""
import sys
from pathlib import Path
from pgq_cli.app import main
sys.argv = ["pgq", "--dsn", {shared!r}, "enqueue", "--file", {str(file)!r}]
assert main() == 0
print(Path("/proc/self/status").read_text())
"""
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", run_python(code, first_on_path=CHECKOUT))
    assert int(peak) * 1024 < 110_000_000


def test_a_terminal_shows_how_far_it_is(file: Path, shared: str) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        environment = variables(shared, TERM="xterm", COLUMNS="80")
        program = command("enqueue", "--file", str(file))
        os.execve(program[0], program, environment)
    seen = b""
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"checking" in seen
    assert b"enqueuing" in seen
    assert b"100%" in seen
