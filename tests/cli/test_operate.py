"""The commands that change things: install, requeue, cancel; and wait and version."""

import json
import threading
from typing import LiteralString

import psycopg
import pytest

from tests.cli.conftest import Here, Run, add_job, add_worker
from tests.support.databases import wait_until

CONNECTED: LiteralString = (
    "select exists (select from pg_catalog.pg_stat_activity where application_name = 'pgq wait')"
)


def statuses(conn: psycopg.Connection) -> dict[int, str]:
    return dict(conn.execute("select id, status from pgq.jobs order by id").fetchall())


def audited(conn: psycopg.Connection) -> list[tuple[str, int]]:
    return conn.execute("select action, changed from pgq.audit order by id").fetchall()


@pytest.mark.parametrize("verb", ["requeue", "cancel", "kill"])
def test_what_the_applications_own_trigger_refuses_is_said_in_a_line(
    verb: str, session: psycopg.Connection, here: Here
) -> None:
    add_worker(session, 7)
    for job_id in (1, 2):
        if verb == "requeue":
            add_job(session, job_id, status="failed")
        else:
            add_job(session, job_id, status="running", worker_id=7)
    before = statuses(session)
    session.execute(
        "create function public.refuse() returns trigger language plpgsql as"
        " $$ begin raise exception 'the books are closed'; end $$;"
        " create trigger refuse before update on pgq.jobs for each row when (old.id = 2)"
        " execute function public.refuse()"
    )
    try:
        ended = here(verb, "1", "2")
    finally:
        session.execute("drop function public.refuse() cascade")
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert "the books are closed" in ended.err
    assert statuses(session) == before


def test_install_says_what_it_did_and_is_safe_to_repeat(blank: str, pgq: Run) -> None:
    first, second = pgq("install", dsn=blank), pgq("install", dsn=blank)
    assert (first.code, first.out, second.code, second.out) == (0, "", 0, "")
    assert first.err.startswith("pgq: schema pgq is at version 1: applied 1 migrations and ")
    assert second.err == "pgq: schema pgq is at version 1: nothing to do\n"
    assert pgq("enqueue", "a", dsn=blank).code == 0


def test_install_refuses_a_schema_of_another_program_and_leaves_it(blank: str, pgq: Run) -> None:
    with psycopg.connect(blank, autocommit=True) as conn:
        conn.execute("create schema pgq create table pgq.jobs (id integer)")
        ended = pgq("install", dsn=blank)
        assert (ended.code, ended.out) == (5, "")
        assert "not ours" in ended.err
        assert ended.err.count("\n") == 1
        tables = conn.execute(
            "select relname from pg_class where relnamespace = 'pgq'::regnamespace"
        )
        assert tables.fetchall() == [("jobs",)]


def test_install_prints_sql_that_installs(blank: str, pgq: Run) -> None:
    printed = pgq("install", "--print", dsn="host=/nowhere")
    assert (printed.code, printed.err) == (0, "")
    with psycopg.connect(blank) as conn:
        conn.execute(printed.out.encode())
    assert pgq("install", dsn=blank).err == "pgq: schema pgq is at version 1: nothing to do\n"


def test_version_tells_what_works_with_what(shared: str, here: Here) -> None:
    (row,) = json.loads(here("version", "--output", "json").out)
    assert list(row) == ["program", "needs_schema", "schema", "server"]
    assert (row["needs_schema"], row["schema"]) == (1, 1)
    with psycopg.connect(shared) as conn:
        assert row["server"] == conn.info.parameter_status("server_version")


def test_version_works_without_a_schema_and_without_a_database(blank: str, pgq: Run) -> None:
    for dsn in (None, "postgresql://app:hunter2@127.0.0.1:1/shop", blank):
        ended = pgq("version", "--output", "json", dsn=dsn)
        (row,) = json.loads(ended.out)
        assert (ended.code, row["needs_schema"], row["schema"]) == (0, 1, None)
        assert (row["server"] is None) == (dsn != blank)
        assert "hunter2" not in ended.err


def test_requeue_tells_what_became_of_each_job(session: psycopg.Connection, here: Here) -> None:
    add_worker(session, 7)
    add_job(session, 1, status="failed", unique_key="u")
    add_job(session, 2, unique_key="u")
    add_job(session, 3, status="running", worker_id=7)
    add_job(session, 4, status="done")
    ended = here("requeue", "4", "3", "2", "1", "99", "4")
    assert ended.code == 1
    assert ended.out.splitlines() == [
        "ID  OUTCOME           HOLDER  REASON",
        " 1  unique key taken       2",
        " 2  already pending",
        " 3  running                   w-7 runs it",
        " 4  requeued",
        "99  not found",
    ]
    assert statuses(session) == {1: "failed", 2: "pending", 3: "running", 4: "pending"}
    forced = here("requeue", "--force", "3", "2", "--output", "csv")
    assert (forced.code, forced.err) == (0, "")
    assert forced.out == (
        "id,outcome,holder,reason\n2,already pending,,\n3,requeued,,w-7 may still run it\n"
    )
    assert audited(session) == [("requeue", 1), ("requeue", 1)]


def test_cancel_tells_what_became_of_each_job(session: psycopg.Connection, here: Here) -> None:
    add_worker(session, 7)
    add_job(session, 1)
    add_job(session, 2, status="running", worker_id=7)
    add_job(session, 3, status="done")
    add_job(session, 4, status="cancelled")
    assert here("cancel", "1", "2", "4").code == 0
    ended = here("cancel", "1", "2", "3", "99", "--output", "jsonl")
    assert ended.code == 1
    assert [json.loads(line) for line in ended.out.splitlines()] == [
        {"id": 1, "outcome": "already cancelled"},
        {"id": 2, "outcome": "requested"},
        {"id": 3, "outcome": "already done"},
        {"id": 99, "outcome": "not found"},
    ]
    assert statuses(session) == {1: "cancelled", 2: "running", 3: "done", 4: "cancelled"}


@pytest.mark.parametrize(("verb", "outcome"), [("requeue", "requeued"), ("cancel", "cancelled")])
def test_a_dry_run_tells_the_same_and_changes_nothing(
    verb: str, outcome: str, session: psycopg.Connection, here: Here
) -> None:
    add_job(session, 1, status="failed" if verb == "requeue" else "pending")
    before = session.execute("select j.*, j.xmin::text from pgq.jobs as j").fetchall()
    ended = here(verb, "1", "99", "--dry-run", "--output", "csv")
    assert ended.code == 1
    assert [line.split(",")[:2] for line in ended.out.splitlines()[1:]] == [
        ["1", outcome],
        ["99", "not found"],
    ]
    assert ended.err == "pgq: a dry run: nothing was changed\n"
    after = session.execute("select j.*, j.xmin::text from pgq.jobs as j").fetchall()
    assert (after, audited(session)) == (before, [])


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [("requeue", "requeued"), ("cancel", "cancelled"), ("kill", "cancelled")],
)
def test_a_table_of_a_dry_run_does_not_say_that_it_was_done(
    verb: str, outcome: str, session: psycopg.Connection, here: Here
) -> None:
    add_job(session, 1, status="failed" if verb == "requeue" else "pending")
    add_job(session, 2, status="pending" if verb == "requeue" else "done")
    ended = here(verb, "1", "2", "99", "--dry-run")
    _, first, second, third = (line.split(maxsplit=1)[1] for line in ended.out.splitlines())
    already = "already pending" if verb == "requeue" else "already done"
    assert (first, second, third) == (f"would be {outcome}", already, "not found")
    assert here(verb, "1", "--dry-run", "-o", "csv").out.splitlines()[1].startswith(f"1,{outcome}")
    assert here(verb, "1").out.splitlines()[1].split(maxsplit=1)[1] == outcome


def test_thousands_of_jobs_are_changed_in_bounded_transactions(
    session: psycopg.Connection, here: Here
) -> None:
    session.execute("insert into pgq.jobs (id, kind) select g, 'a' from generate_series(1, 2500) g")
    ended = here("cancel", *map(str, range(1, 2501)), "--output", "csv")
    assert (ended.code, ended.out.count(",cancelled\n")) == (0, 2500)
    assert audited(session) == [("cancel", 1000), ("cancel", 1000), ("cancel", 500)]


def test_who_acts_is_written_down(session: psycopg.Connection, pgq: Run, shared: str) -> None:
    add_job(session, 1)
    pgq("cancel", "1", dsn=shared, LOGNAME="alice")
    ((actor,),) = session.execute("select actor from pgq.audit").fetchall()
    assert actor.startswith("alice@")


@pytest.mark.parametrize(
    ("status", "code", "out", "words"),
    [
        ("done", 0, '{"url": "Zoë"}\n', ""),
        ("failed", 1, "", "job 1 failed: boom"),
        ("cancelled", 6, "", "job 1 was cancelled"),
        ("pending", 7, "", "job 1 is still pending"),
        ("running", 7, "", "job 1 is still running"),
    ],
)
def test_wait_ends_with_the_job(
    status: str, code: int, out: str, words: str, session: psycopg.Connection, here: Here
) -> None:
    add_job(
        session, 1, status=status, result={"url": "Zoë"} if status == "done" else None,
        last_error="boom" if status == "failed" else None,
    )  # fmt: skip
    ended = here("wait", "1", "--timeout", "0.05s")
    assert (ended.code, ended.out) == (code, out)
    assert words in ended.err
    assert ended.err.count("\n") == (1 if words else 0)


def test_wait_prints_null_for_a_job_without_a_result(
    session: psycopg.Connection, here: Here
) -> None:
    add_job(session, 1, status="done")
    assert here("wait", "1").out == "null\n"


def test_a_result_that_was_not_kept_is_an_error(session: psycopg.Connection, here: Here) -> None:
    add_job(session, 1, status="done", last_error="too large")
    ended = here("wait", "1")
    assert (ended.code, ended.out) == (1, "")
    assert "too large" in ended.err


def test_wait_hears_of_the_end_while_it_waits(
    shared: str, session: psycopg.Connection, here: Here
) -> None:
    add_job(session, 1)

    def finish() -> None:
        with psycopg.connect(shared, autocommit=True) as conn:
            wait_until(conn, CONNECTED)
            conn.execute(
                "update pgq.jobs set status = 'done', finished_at = now(), result = '7'"
                " where id = 1"
            )

    finisher = threading.Thread(target=finish)
    finisher.start()
    ended = here("wait", "1", "--timeout", "20s")
    finisher.join()
    assert (ended.code, ended.out) == (0, "7\n")
