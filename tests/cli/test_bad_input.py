"""Bad input: one clear line, the documented exit code, and nothing written."""

import os
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.cli.conftest import Ended, Here, Run
from tests.support import cluster
from tests.support.databases import Server


@pytest.fixture(scope="session")
def server_with_passwords(server: Server) -> Iterator[str]:
    """A server that asks for a password: that of the tests at its network address, or a new one."""
    if str(conninfo_to_dict(server.dsn).get("host")).startswith("/"):
        yield make_conninfo(server.dsn, host="127.0.0.1")
        return
    with cluster.running(int(os.environ.get("PGQ_TEST_PG", "18"))) as started:
        yield make_conninfo(started.dsn(), host="127.0.0.1")


def refused(ended: Ended, code: int, *words: str) -> None:
    """One line on stderr with these words, nothing on stdout, this exit code."""
    assert ended.code == code, ended
    assert ended.out == ""
    assert ended.err.startswith("pgq: ")
    assert ended.err.count("\n") == 1
    assert ended.err.endswith("\n")
    assert "Traceback" not in ended.err
    for word in words:
        assert word in ended.err


Case = tuple[list[str | bytes], list[str]]

IMPOSSIBLE: list[Case] = [
    (["a", r'{"s": "a\u0000b"}'], ["NUL character", "$.s"]),
    (["a", r'{"s": ["x", "\ud800"]}'], ["lone surrogate", "$.s[1]"]),
    (["a", b'{"s": "\xff"}'], ["not UTF-8"]),
    (["a", '{"x": NaN}'], ["NaN", "$.x"]),
    (["a", '{"x": 1e999}'], ["beyond the range of a double", "$.x"]),
    (["a", "[1, 2]"], ["must be a JSON object, not an array"]),
    (["", "{}"], ["kind", "1 to 200 characters"]),
    (["x" * 201, "{}"], ["kind", "1 to 200 characters, not 201"]),
    (["a", "{}", "--delay", "-5m"], ["--delay", "90s, 5m, 2h"]),
    (["a", "{}", "--priority", "32768"], ["priority", "from -32768 to 32767"]),
    (["a", "{}", "--max-attempts", "0"], ["max_attempts", "from 1"]),
    (["a", "{}", "--at", "2030-01-31T08:00:00"], ["--at", "no zone", "add Z"]),
    (["--file", "missing.jsonl"], ["missing.jsonl", "No such file"]),
]

ALSO_IMPOSSIBLE: list[Case] = [
    (["a", r'{"a\u0000b": 1}'], ["NUL character", "key"]),
    (["a", '{"x": 1' + "0" * 400 + "}"], ["beyond the range of a double", "$.x"]),
    (["a", '{"x": ' + "9" * 5000 + "}"], ["number too long"]),
    (["a", "null"], ["must be a JSON object, not null"]),
    (["a", "{to: 1}"], ["not JSON", "column 2"]),
    (["a", ""], ["not JSON"]),
    (["a\0b", "{}"], ["kind", "NUL"]),
    (["a", "{}", "--queue", ""], ["queue", "1 to 200 characters"]),
    (["a", "{}", "--queue", "x" * 201], ["queue", "not 201"]),
    (["a", "{}", "--unique", ""], ["unique key", "1 to 500 characters"]),
    (["a", "{}", "--unique", "x" * 501], ["unique key", "not 501"]),
    (["a", "{}", "--delay", "40000d"], ["--delay", "at most"]),
    (["a", "{}", "--delay", "5m", "--at", "2030-01-31T08:00:00Z"], ["--delay or --at"]),
    (["a", "{}", "--at", "tomorrow"], ["--at", "2030-01-31T08:00:00Z"]),
    (["a", "{}", "--at", "9999-12-31T08:00:00Z"], ["between the years"]),
    (["a", "{}", "--priority", "high"], ["priority", "'high'"]),
    (["a", "{}", "--max-attempts", "1000001"], ["max_attempts", "1000000"]),
    (["a", "{}", "--timeout", "0s"], ["timeout", "above 0"]),
    (["a", "{}", "--timeout", "soon"], ["--timeout", "90s, 5m, 2h"]),
    (['{"to": "a"}'], ["no kind", "type"]),
    (['{"type": 7}'], ["no kind"]),
    ([], ["give a kind"]),
    (["a", "{}", "--file", "jobs.jsonl"], ["with --file"]),
    (["--file", "jobs.jsonl", "--unique", "u"], ["with --file"]),
    (["--file", "."], ["Is a directory"]),
]


@pytest.mark.parametrize(("arguments", "words"), IMPOSSIBLE)
def test_what_can_be_no_job_is_refused_before_a_database_is_asked(
    arguments: list[str | bytes], words: list[str], pgq: Run
) -> None:
    refused(pgq("enqueue", *arguments, dsn="host=/nowhere"), 2, *words)


@pytest.mark.parametrize(("arguments", "words"), ALSO_IMPOSSIBLE)
def test_more_that_can_be_no_job(arguments: list[str], words: list[str], here: Here) -> None:
    refused(here("enqueue", *arguments), 2, *words)


def test_a_payload_over_the_limit_is_refused_and_nothing_is_written(
    shared: str, session: psycopg.Connection, pgq: Run
) -> None:
    huge = '{"s": "' + "é" * 530_000 + '"}'
    refused(pgq("enqueue", "a", "-", dsn=shared, stdin=huge), 2, "payload", "1048576")
    assert session.execute("select count(*) from pgq.jobs").fetchone() == (0,)


def test_payload_text_on_stdin_must_be_utf8(shared: str, pgq: Run) -> None:
    refused(pgq("enqueue", "a", "-", dsn=shared, stdin=b'{"s": "\xff"}'), 2, "not UTF-8", "byte 8")


@pytest.mark.parametrize("name", ["install", "enqueue", "jobs", "stats", "worker"])
def test_a_server_that_is_not_there(name: str, pgq: Run) -> None:
    dsn = "postgresql://app:hunter2@127.0.0.1:1/shop"
    arguments = {"enqueue": ["a"], "worker": ["--exec", "true"]}.get(name, [])
    ended = pgq(name, *arguments, dsn=dsn)
    refused(ended, 3, "shop at 127.0.0.1:1", "check the DSN")
    assert "hunter2" not in ended.err


def test_a_wrong_password_is_not_shown(server_with_passwords: str, pgq: Run) -> None:
    dsn = make_conninfo(server_with_passwords, password="hunter2")
    ended = pgq("jobs", dsn=dsn)
    refused(ended, 3, "password authentication failed", "check the DSN, the password")
    assert "hunter2" not in ended.err
    assert "hunter2" not in pgq("jobs", dsn=dsn, PGQ_DEBUG="1").err


@pytest.mark.parametrize("dsn", ["postgresql://app:hunter2@[db/shop", "nonsense hunter2", "a=b"])
def test_a_dsn_that_cannot_be_read_is_not_shown(dsn: str, pgq: Run) -> None:
    for ended in (pgq("jobs", dsn=dsn), pgq("jobs", dsn=dsn, PGQ_DEBUG="1")):
        assert ended.code == 2
        assert "the DSN cannot be read" in ended.err
        assert "hunter2" not in ended.err


COMMANDS = [
    ["enqueue", "a"],
    ["enqueue", "--file", "-"],
    ["jobs"],
    ["show", "1"],
    ["wait", "1"],
    ["stats"],
    ["requeue", "1"],
    ["cancel", "1"],
    ["worker", "--exec", "true", "--drain"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_a_database_without_the_schema(arguments: list[str], blank: str, pgq: Run) -> None:
    refused(pgq(*arguments, dsn=blank), 3, "not installed", "pgq install")


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_a_schema_that_is_newer_than_the_program(arguments: list[str], db: str, pgq: Run) -> None:
    with psycopg.connect(db) as conn:
        conn.execute("insert into pgq.migrations (number, name, checksum) values (999, 'x', 'x')")
    refused(pgq(*arguments, dsn=db), 3, "at version 999, newer", "upgrade the program")


@pytest.mark.parametrize("job_id", ["0", "99", "-1", "9223372036854775807"])
def test_a_job_that_does_not_exist(job_id: str, shared: str, pgq: Run) -> None:
    refused(pgq("show", "--", job_id, dsn=shared), 1, f"job {job_id} does not exist")


def test_an_id_that_no_job_can_have(shared: str, pgq: Run) -> None:
    refused(pgq("show", "9223372036854775808", dsn=shared), 2, "out of range")
