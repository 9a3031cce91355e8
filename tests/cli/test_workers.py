"""`pgq workers`: who lives, who does not, what is wrong; and the health check."""

import json
import socket
import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from tests.cli.conftest import Here, Run, add_job, add_worker, reader

HOSTILE = "\x1b[2J\r\nw-1 is well \u202e"


def ago(**units: float) -> datetime:
    return datetime.now(UTC) - timedelta(**units)


@pytest.fixture
def workers(session: psycopg.Connection) -> None:
    """A worker in each state."""
    add_worker(session, 1)
    add_worker(session, 2)
    add_worker(session, 3, draining_at=ago(seconds=3), queues=["mail", "images"])
    add_worker(session, 4, silence=12)
    add_worker(session, 5, trouble="finish: permission denied for table jobs")
    add_worker(session, 6, silence=600, died_at=ago(minutes=9))
    add_worker(session, 7, silence=7200, died_at=ago(hours=2))
    add_worker(session, 8, silence=60, stopped_at=ago(minutes=1))
    for job_id in (1, 2, 3):
        add_job(session, job_id, queue="mail", status="running", worker_id=2)
    add_job(session, 4, queue="mail", status="running", worker_id=3)


def states(here: Here, *arguments: str) -> dict[int, str]:
    listed = json.loads(here("workers", *arguments, "--output", "json").out)
    return {row["id"]: row["state"] for row in listed}


@pytest.mark.usefixtures("workers")
def test_each_worker_has_a_state(here: Here) -> None:
    living = {1: "idle", 2: "working", 3: "draining", 4: "silent", 5: "trouble"}
    assert states(here) == {**living, 6: "dead"}
    assert states(here, "--all") == {**living, 6: "dead", 7: "dead", 8: "stopped"}
    assert states(here, "--queue", "images") == {3: "draining"}
    assert states(here, "--here") == {}


@pytest.mark.usefixtures("workers")
def test_a_table_says_how_they_are_and_what_is_wrong(here: Here) -> None:
    listed = here("workers")
    heading, *rows = listed.out.splitlines()
    assert heading.split() == [
        "ID", "STATE", "QUEUES", "RUNNING", "CONCURRENCY", "BEAT_AGE", "HOST", "PID",
    ]  # fmt: skip
    assert max(map(len, (heading, *rows))) <= 80
    assert rows[1].split()[:5] == ["2", "working", "mail", "3", "10"]
    assert rows[2].split()[:5] == ["3", "draining", "mail,images", "1", "10"]
    silent, trouble = listed.err.splitlines()
    assert silent.startswith("pgq: w-4 (web-1, pid 4711) is silent for 12")
    assert trouble == (
        "pgq: w-5 (web-1, pid 4711) has trouble: finish: permission denied for table jobs"
    )
    assert listed.code == 0


@pytest.mark.usefixtures("workers")
def test_programs_get_every_column(here: Here) -> None:
    row = json.loads(here("workers", "--output", "json").out)[1]
    assert list(row) == [
        "id", "state", "queues", "kinds", "running", "concurrency", "beat_age", "lock_held",
        "trouble", "host", "pid", "version", "started_at", "beat_at", "draining_at",
        "stopped_at", "died_at",
    ]  # fmt: skip
    assert (row["queues"], row["running"], row["lock_held"]) == (["mail"], 3, None)


def test_the_lock_of_a_worker_is_held_or_gone(
    shared: str, session: psycopg.Connection, here: Here
) -> None:
    add_worker(session, 1, lock_key=-(2**62) - 7)
    add_worker(session, 2, lock_key=7)
    with psycopg.connect(shared, autocommit=True) as beating:
        beating.execute("select pg_advisory_lock(%s)", [-(2**62) - 7])
        listed = json.loads(here("workers", "--output", "json").out)
    assert [row["lock_held"] for row in listed] == [True, False]


def test_no_age_is_negative(session: psycopg.Connection, here: Here) -> None:
    add_worker(session, 1, silence=-3)
    (row,) = json.loads(here("workers", "--output", "json").out)
    assert row["beat_age"] == 0


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "csv"])
def test_hostile_text_of_a_worker_is_escaped(
    output: str, session: psycopg.Connection, here: Here
) -> None:
    add_worker(session, 1, host=HOSTILE, trouble=HOSTILE, queues=[HOSTILE], version=HOSTILE)
    listed = here("workers", "--output", output)
    assert "x1b[2J" in listed.out or "u001b[2J" in listed.out
    assert all(line.isprintable() for line in (listed.out + listed.err).split("\n"))
    assert here("workers", "--check").err.count("\n") == 1


def test_nobody_is_said_on_stderr(here: Here) -> None:
    listed = here("workers")
    assert (listed.code, listed.out, listed.err) == (0, "", "pgq: no worker is known\n")


def test_a_check_is_silent_where_all_is_well(session: psycopg.Connection, here: Here) -> None:
    add_worker(session, 1)
    add_worker(session, 2, silence=600, died_at=ago(minutes=9))
    add_worker(session, 3, draining_at=ago(seconds=3))
    checked = here("workers", "--check")
    assert (checked.code, checked.out, checked.err) == (0, "", "")


@pytest.mark.usefixtures("workers")
def test_a_check_has_a_line_for_each_problem_and_the_code_4(here: Here) -> None:
    checked = here("workers", "--check")
    assert (checked.code, checked.out) == (4, "")
    assert [line.split(" is ")[0].split(" has ")[0] for line in checked.err.splitlines()] == [
        "pgq: w-4 (web-1, pid 4711)",
        "pgq: w-5 (web-1, pid 4711)",
    ]
    assert here("workers", "--check", "--queue", "images").code == 0


def test_a_check_finds_that_nobody_lives(session: psycopg.Connection, here: Here) -> None:
    add_worker(session, 1, silence=600, died_at=ago(minutes=9))
    assert here("workers", "--check").err == "pgq: no worker lives\n"
    checked = here("workers", "--check", "--queue", "mail", "--here")
    assert (checked.code, checked.out) == (4, "")
    assert checked.err == f"pgq: no worker of the queue mail lives on {socket.gethostname()}\n"


def test_a_check_of_this_host_minds_no_other(session: psycopg.Connection, here: Here) -> None:
    add_worker(session, 1, trouble="it does not claim")
    add_worker(session, 2, host=socket.gethostname())
    assert here("workers", "--check").code == 4
    assert here("workers", "--check", "--here").code == 0


def test_a_check_without_a_database_ends_with_3(pgq: Run) -> None:
    checked = pgq("workers", "--check", dsn="host=/nowhere")
    assert (checked.code, checked.out, checked.err.count("\n")) == (3, "", 1)


@pytest.mark.parametrize("option", [["--all"], ["--output", "json"]])
def test_a_check_lists_nothing(option: list[str], here: Here) -> None:
    checked = here("workers", "--check", *option)
    assert (checked.code, checked.out) == (2, "")
    assert "--check lists nothing" in checked.err


def test_a_role_that_may_only_read_sees_workers_and_kills_nothing(
    shared: str, session: psycopg.Connection, pgq: Run
) -> None:
    add_worker(session, 1)
    add_worker(session, 2, silence=90, died_at=ago(seconds=9))
    add_job(session, 1, queue="mail", status="running", worker_id=1)
    add_job(session, 2, queue="mail", status="running", worker_id=2)
    with reader(shared) as dsn:
        assert pgq("workers", "--check", dsn=dsn).code == 0
        assert pgq("workers", "--output", "csv", dsn=dsn).out.count("\n") == 3
        for command in (["kill", "1"], ["cancel", "1"], ["reap"], ["requeue", "--stuck"]):
            refused = pgq(*command, dsn=dsn)
            assert (refused.code, refused.out, refused.err.count("\n")) == (5, "", 1)
            assert "the database role may not do this: permission denied" in refused.err


def test_a_hundred_thousand_dead_workers_are_neither_read_nor_listed(
    session: psycopg.Connection, here: Here
) -> None:
    session.execute(
        "insert into pgq.workers (host, pid, version, queues, concurrency, died_at)"
        " select 'web-1', n, '0', '{mail}', 1, now() from generate_series(1, 100000) as n"
    )
    add_worker(session, 900_000)
    began = time.monotonic()
    listed = json.loads(here("workers", "--output", "json").out)
    assert len(listed) == 101
    assert listed[0]["id"] == 900_000
    assert time.monotonic() - began < 10
