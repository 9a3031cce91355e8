"""What a worker is configured with: what cannot be is refused in one line, before it starts."""

from collections.abc import Mapping
from pathlib import Path

import psycopg
import pytest

from pgq import db as database
from pgq.errors import UsageError
from tests.cli.conftest import Run

NOWHERE = "host=/nowhere"
"""A refusal comes before a connection."""

TASKS = """
from datetime import timedelta

import pgq

app = pgq.App()
bare = pgq.App()


@app.job("greet", queue="letters")
def greet() -> None: ...
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A directory with an app in it."""
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


def refused(
    pgq: Run, desk: Path, *arguments: str, words: str, place: str = "", **environment: str
) -> None:
    """Exit code 2, and one line with these words on stderr alone."""
    ended = pgq("worker", *arguments, dsn=NOWHERE, cwd=desk, **environment)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("pgq: ")
    assert (ended.err.count("\n"), ended.err[-1]) == (1, "\n")
    assert words in ended.err
    assert place in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-c", "0"], "concurrency: give a whole number from 1"),
        (["-c", "-3"], "concurrency: give a whole number from 1"),
        (["-c", "many"], "'many' is not a whole number"),
        (["--poll", "0s"], "poll: give a duration from 0.01s"),
        (["--grace", "-1s"], "--grace: duration '-1s'"),
        (["--grace", "10"], "--grace: duration '10': write it like 90s"),
        (["-q", ""], "queue: give 1 to 200 characters, not 0"),
        (["-q", "x" * 201], "queue: give 1 to 200 characters, not 201"),
        (["--kind", ""], "kind: give 1 to 200 characters, not 0"),
        (["--kind", "grete"], "no handler for kind 'grete'; it has greet"),
        (["--kind", "greet,other"], "no handler for kind 'greet,other'"),
        (["--exec", "true"], "give either an app"),
    ],
)
def test_an_impossible_option_is_refused(
    pgq: Run, desk: Path, arguments: list[str], words: str
) -> None:
    refused(pgq, desk, "--app", "tasks:app", *arguments, words=words)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"PGQ_CONCURRENCY": "0"}, "concurrency: give a whole number from 1"),
        ({"PGQ_GRACE": "soon"}, "--grace: duration 'soon'"),
        ({"PGQ_POLL": "0s"}, "poll: give a duration from 0.01s"),
        ({"PGQ_KINDS": "greet grete"}, "no handler for kind 'grete'"),
        ({"PGQ_LOG_LEVEL": "loud"}, "'loud' is not one of"),
        ({"PGQ_APP": "tasks:bare"}, "the app has no handlers"),
        ({"PGQ_APP": ""}, "give either an app"),
    ],
)
def test_an_impossible_variable_is_refused(
    pgq: Run, desk: Path, environment: Mapping[str, str], words: str
) -> None:
    refused(pgq, desk, words=words, **{"PGQ_APP": "tasks:app", **environment})


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("timeout=timedelta(0)", "timeout: give a duration above 0"),
        ("timeout=timedelta(seconds=-1)", "timeout: give a duration above 0"),
        ("timeout=30", "timeout: give a timedelta, not int"),
        ("queue=''", "queue: give 1 to 200 characters"),
        ("max_attempts=0", "max_attempts: give a whole number from 1"),
        ("retry=30", "retry: give a timedelta"),
    ],
)
def test_a_handler_that_cannot_be_is_refused_with_its_place(
    pgq: Run, desk: Path, option: str, words: str
) -> None:
    wrong = f'\n\n@app.job("other", {option})\ndef other() -> None: ...\n'
    (desk / "tasks.py").write_text(TASKS + wrong)
    line = (TASKS + wrong)[: (TASKS + wrong).index('@app.job("other"')].count("\n") + 1

    refused(pgq, desk, "--app", "tasks:app", words=words, place=f"(tasks.py:{line})")


@pytest.mark.parametrize("value", ["0s", "-5s", "5"])
def test_a_timeout_that_cannot_be_is_refused_at_enqueue(pgq: Run, value: str) -> None:
    ended = pgq("enqueue", "greet", "{}", "--timeout", value, dsn=NOWHERE)

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "timeout" in ended.err


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "insert into pgq.jobs (kind, timeout) values ('greet', '0')",
            "timeout: give a duration above 0 and at most 3650 days",
        ),
        (
            "insert into pgq.jobs (kind, timeout) values ('greet', '-1 second')",
            "timeout: give a duration above 0 and at most 3650 days",
        ),
        ("select pgq.enqueue('greet', timeout => '0')", "timeout: give a duration above 0"),
        ("insert into pgq.kinds (kind, timeout) values ('greet', '0')", "timeout: give a duration"),
        ("insert into pgq.kinds (kind, max_attempts) values ('greet', 0)", "max_attempts: give"),
        (
            "insert into pgq.queues (queue, visibility_timeout) values ('letters', '3s')",
            "visibility timeout: give at least 10 seconds",
        ),
    ],
)
def test_sql_refuses_what_cannot_be(conn: psycopg.Connection, statement: str, words: str) -> None:
    with pytest.raises(UsageError, match=words), database.driver_errors():
        conn.execute(statement.encode())


def test_a_comma_in_a_queue_is_doubted_and_served(pgq: Run, shared: str, desk: Path) -> None:
    ended = pgq(
        "worker", "--app", "tasks:app", "-q", "letters,other", "--drain", dsn=shared, cwd=desk
    )

    assert ended.code == 0
    hints = [line for line in ended.err.splitlines() if " warning " in line]
    assert len(hints) == 1
    assert "--queue 'letters,other' is one name with a comma in it: give --queue once" in hints[0]


def test_variables_that_are_set_to_nothing_count_as_unset(
    pgq: Run, shared: str, desk: Path
) -> None:
    """As an environment file of an init system has them."""
    names = ("PGQ_QUEUES", "PGQ_KINDS", "PGQ_CONCURRENCY", "PGQ_GRACE", "PGQ_POLL")
    nothing = dict.fromkeys((*names, "PGQ_LOG_LEVEL", "PGQ_LOG_FORMAT"), "")

    ended = pgq("worker", "--app", "tasks:app", "--drain", dsn=shared, cwd=desk, **nothing)

    assert ended.code == 0, ended.err
    assert "queues=letters,default" in ended.err
