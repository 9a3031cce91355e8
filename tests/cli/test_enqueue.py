"""`pgq enqueue`: one job."""

import json
from datetime import UTC, datetime
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.cli.conftest import Here, Run


def job(conn: psycopg.Connection, job_id: str | int) -> dict[str, Any]:
    cursor = conn.cursor(row_factory=dict_row)
    found = cursor.execute("select * from pgq.jobs where id = %s", (int(job_id),)).fetchone()
    assert found is not None
    return found


def test_the_id_is_all_that_is_printed(shared: str, session: psycopg.Connection, pgq: Run) -> None:
    ended = pgq("enqueue", "send_email", '{"to": "a@example.org"}', dsn=shared)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"{int(ended.out)}\n"
    row = job(session, ended.out)
    assert (row["kind"], row["payload"]) == ("send_email", {"to": "a@example.org"})
    assert (row["queue"], row["status"], row["max_attempts"]) == ("default", "pending", 3)


def test_options_say_the_rest(session: psycopg.Connection, here: Here) -> None:
    ended = here(
        "enqueue", "a", "--queue", "mail", "--priority", "-5", "--at", "2030-01-31T08:00:00+02:00",
        "--max-attempts", "9", "--timeout", "1m30s", "--unique", "u",
    )  # fmt: skip
    row = job(session, ended.out)
    assert (row["queue"], row["priority"], row["max_attempts"]) == ("mail", -5, 9)
    assert row["scheduled_at"] == datetime(2030, 1, 31, 6, tzinfo=UTC)
    assert (row["timeout"].total_seconds(), row["unique_key"]) == (90, "u")


def test_a_delay_is_added_to_the_clock_of_the_database(
    session: psycopg.Connection, here: Here
) -> None:
    row = job(session, here("enqueue", "a", "--delay", "5m").out)
    assert (row["scheduled_at"] - row["created_at"]).total_seconds() == 300


@pytest.mark.parametrize(
    "arguments", [['{"type": "a", "n": 1}'], ["-"], [' \n{"type": "a", "n": 1}']]
)
def test_a_job_without_a_kind_takes_the_type_of_its_payload(
    arguments: list[str], shared: str, session: psycopg.Connection, pgq: Run
) -> None:
    ended = pgq("enqueue", *arguments, dsn=shared, stdin='\ufeff{"type": "a", "n": 1}\n')
    row = job(session, ended.out)
    assert (row["kind"], row["payload"]) == ("a", {"type": "a", "n": 1})


def test_a_payload_comes_from_stdin_when_asked(
    shared: str, session: psycopg.Connection, pgq: Run
) -> None:
    ended = pgq("enqueue", "a", "-", dsn=shared, stdin='{"to": "Zoë"}')
    assert job(session, ended.out)["payload"] == {"to": "Zoë"}


def test_a_duplicate_gives_the_id_of_the_job_that_has_the_key(here: Here) -> None:
    first = here("enqueue", "a", "--unique", "u")
    second = here("enqueue", "b", "--unique", "u")
    assert (second.code, second.out) == (0, first.out)
    assert second.err == f"pgq: duplicate of job {first.out.strip()}, which has this unique key\n"


def test_a_kind_that_nobody_serves_and_a_large_payload_are_accepted(
    session: psycopg.Connection, here: Here
) -> None:
    payload = {"text": "é" * 10_000}
    ended = here("enqueue", "nobody_serves_this", json.dumps(payload))
    assert job(session, ended.out)["payload"] == payload


@pytest.mark.parametrize(
    ("locale", "utf8"),
    [("C", "1"), ("C", "0"), ("C.UTF-8", "0")],
)
def test_letters_survive_every_locale(
    locale: str, utf8: str, shared: str, session: psycopg.Connection, pgq: Run
) -> None:
    run = partial(pgq, dsn=shared, LC_ALL=locale, PYTHONUTF8=utf8, PYTHONCOERCECLOCALE="0")
    ended = run("enqueue", "café".encode(), '{"to": "Zoë 🙂"}'.encode())
    row = job(session, ended.out)
    assert (row["kind"], row["payload"]) == ("café", {"to": "Zoë 🙂"})
    listed = run("jobs", "--output", "json")
    assert json.loads(listed.out)[0]["kind"] == "café"
    assert run("jobs").code == 0
