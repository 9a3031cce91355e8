"""stdout is data, stderr is talk; readers that go away, terminals, locales, interruptions."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import LiteralString

import psycopg
import pytest

from tests.cli.conftest import Run, add_job, command, variables
from tests.support.databases import wait_until

ASKING: LiteralString = (
    "select exists (select from pg_catalog.pg_stat_activity"
    " where application_name = 'pgq wait' and query like '%%result%%')"
)


@pytest.fixture
def deserted() -> Iterator[int]:
    """The writing end of a pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["jobs"], ["show", "1", "-o", "json"], ["--help"]])
def test_a_reader_that_goes_away_ends_the_command_silently(
    arguments: list[str], unbuffered: str, deserted: int, shared: str, session: psycopg.Connection
) -> None:
    add_job(session, 1)
    ended = subprocess.run(
        command(*arguments),
        check=False,
        stdout=deserted,
        stderr=subprocess.PIPE,
        env=variables(shared, PYTHONUNBUFFERED=unbuffered),
    )
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_head_takes_the_first_line_and_nobody_complains(
    shared: str, session: psycopg.Connection
) -> None:
    session.execute("insert into pgq.jobs (kind) select 'a' from generate_series(1, 20000)")
    with subprocess.Popen(
        command("jobs", "--limit", "20000", "--output", "jsonl"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=variables(shared),
    ) as listing:
        assert listing.stdout
        assert listing.stderr
        assert json.loads(listing.stdout.readline())["kind"] == "a"
        listing.stdout.close()
        assert listing.stderr.read() == b""
        assert listing.wait() in (0, 141)


def test_no_colour_reaches_a_file(shared: str, pgq: Run) -> None:
    for arguments in (["jobs"], ["--help"], ["jobs", "--nope"]):
        ended = pgq(*arguments, dsn=shared, FORCE_COLOR="1", CLICOLOR_FORCE="1", TERM="xterm")
        assert "\x1b" not in ended.out + ended.err


def test_a_terminal_gets_a_table_that_fits(shared: str, session: psycopg.Connection) -> None:
    add_job(session, 1, queue="q" * 100, status="failed", last_error="e" * 500)
    seen = at_terminal(["jobs"], shared, columns=80)
    lines = seen.replace("\r\n", "\n").splitlines()
    assert max(map(len, lines)) <= 80
    assert "qqq..." in lines[1]
    assert lines[1].endswith("e...")


def at_terminal(arguments: list[str], dsn: str, *, columns: int) -> str:
    """All that a command shows on a terminal of this width."""
    master, slave = pty.openpty()
    environment = variables(dsn, TERM="xterm", COLUMNS=str(columns))
    with subprocess.Popen(
        command(*arguments), stdin=slave, stdout=slave, stderr=slave, env=environment
    ) as running:
        os.close(slave)
        seen = b""
        try:
            while chunk := os.read(master, 65536):
                seen += chunk
        except OSError:  # the end of a terminal whose other end is closed
            pass
        running.wait()
    os.close(master)
    return seen.decode()


def test_what_a_locale_cannot_write_is_escaped_for_people_and_kept_for_programs(
    shared: str, session: psycopg.Connection, pgq: Run
) -> None:
    add_job(session, 1, kind="café", payload={"to": "Zoë"})
    run = partial(pgq, dsn=shared, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert r"caf\xe9" in run("jobs").out
    shown = run("show", "1", "--output", "json")
    assert json.loads(shown.out)["payload"] == {"to": "Zoë"}
    assert "café" in run("jobs", "--output", "csv").out


def test_an_interrupted_command_ends_with_130(shared: str, session: psycopg.Connection) -> None:
    add_job(session, 1)
    with subprocess.Popen(
        command("wait", "1", "--timeout", "20s"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=variables(shared),
    ) as waiting:
        wait_until(session, ASKING)
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate()
    assert (waiting.returncode, out, err) == (130, b"", b"pgq: interrupted\n")


def test_a_closed_stdout_is_an_error_in_one_line(shared: str) -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *command("jobs", "--output", "csv")],
        check=False,
        stderr=subprocess.PIPE,
        env=variables(shared),
    )
    assert ended.returncode == 1
    assert ended.stderr == b"pgq: stdout is closed: nothing can be printed\n"


def test_a_full_disk_behind_stdout_is_an_error_in_one_line(shared: str) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        ended = subprocess.run(
            command("jobs", "--output", "csv"),
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            env=variables(shared),
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith(b"pgq: No space left on device\n")
