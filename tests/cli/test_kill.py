"""`pgq kill`: asked, waited for, and said what ended the job."""

import json
import threading
from typing import LiteralString

import psycopg
import pytest

from pgq.model import Cancelled
from tests.cli.conftest import Here, Run, add_job, add_worker
from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.workers import starting

TOLD: LiteralString = "select count(kill_requested_at) = %s from pgq.jobs"


def test_kill_tells_what_became_of_each_job(session: psycopg.Connection, here: Here) -> None:
    add_worker(session, 7)
    add_job(session, 1)
    add_job(session, 2, status="done")
    add_job(session, 3, status="cancelled")
    add_job(session, 4, status="running", worker_id=6)
    ended = here("kill", "4", "3", "2", "1", "99")
    assert ended.code == 1
    assert ended.out.splitlines() == [
        "ID  OUTCOME            REASON",
        " 1  cancelled",
        " 2  already done",
        " 3  already cancelled",
        " 4  cancelled",
        "99  not found",
    ]
    assert here("kill", "1", "3", "--output", "csv").code == 0


def test_a_kill_waits_for_the_worker_and_tells_what_ended_the_job(
    shared: str, session: psycopg.Connection, here: Here
) -> None:
    worker_id = jobs.register(session)
    jobs.fill(session, 2)
    stopped, done = jobs.claim(session, worker_id)

    def obey() -> None:
        with psycopg.connect(shared, autocommit=True) as conn:
            wait_until(conn, TOLD, 2)
            jobs.finish(conn, worker_id, done)
            reason = Cancelled("killed by an operator (ended by SIGKILL)")
            jobs.settle(conn, worker_id, reason, stopped)

    worker = threading.Thread(target=obey)
    worker.start()
    ended = here("kill", str(stopped.id), str(done.id), "--output", "json")
    worker.join()
    assert ended.code == 1
    assert [(row["outcome"], row["reason"]) for row in json.loads(ended.out)] == [
        ("killed", "killed by an operator (ended by SIGKILL)"),
        ("already done", None),
    ]


def test_a_job_that_somebody_requeues_meanwhile_is_not_waited_for(
    shared: str, session: psycopg.Connection, here: Here
) -> None:
    worker_id = jobs.register(session)
    job_id = jobs.enqueue(session)
    jobs.claim(session, worker_id)

    def requeue() -> None:
        with psycopg.connect(shared, autocommit=True) as conn:
            wait_until(conn, TOLD, 1)
            jobs.requeue(conn, job_id, force=True)

    other = threading.Thread(target=requeue)
    other.start()
    ended = here("kill", str(job_id), "--output", "csv")
    other.join()
    assert (ended.code, ended.out.splitlines()[1]) == (1, f"{job_id},requeued,")


def test_what_still_runs_after_the_wait_is_said_with_its_worker_and_the_way_out(
    session: psycopg.Connection, here: Here
) -> None:
    add_worker(session, 7, silence=12)
    trouble = "job 2 (resize) has blocked the event loop for 12 s"
    session.execute("update pgq.workers set trouble = %s", [trouble])
    add_job(session, 1, status="running", worker_id=7)
    ended = here("kill", "1", "--wait", "0.05s")
    assert ended.code == 1
    assert ended.out.splitlines()[1].startswith(
        " 1  still running  w-7 (web-1, pid 4711) beat 12s ago"
    )
    assert ended.out.splitlines()[1].endswith(f" ago: {trouble}")
    assert "what still runs cannot be stopped (a thread" in ended.err
    assert "or cannot tell of its end while its event loop is blocked" in ended.err
    assert "--force frees the job while its handler goes on" in ended.err
    assert ended.err.count("\n") == 1


def test_without_a_wait_a_kill_only_asks(session: psycopg.Connection, here: Here) -> None:
    add_worker(session, 7)
    add_job(session, 1, status="running", worker_id=7)
    ended = here("kill", "1", "--wait", "0s", "--output", "jsonl")
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out) == {"id": 1, "outcome": "requested", "reason": None}


def test_force_says_whose_handler_may_go_on(session: psycopg.Connection, here: Here) -> None:
    add_worker(session, 7)
    add_job(session, 1, status="running", worker_id=7, unique_key="u")
    ended = here("kill", "--force", "1", "--output", "csv")
    assert ended.out == "id,outcome,reason\n1,killed,w-7 may still run it\n"
    assert (ended.code, ended.err) == (0, "")
    assert here("enqueue", "a", "--unique", "u").code == 0


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_dry_run_of_a_kill_waits_for_nothing_and_changes_nothing(
    force: list[str], session: psycopg.Connection, here: Here
) -> None:
    add_worker(session, 7)
    add_job(session, 1, status="running", worker_id=7)
    before = session.execute("select j.*, j.xmin::text from pgq.jobs as j").fetchall()
    ended = here("kill", "1", "--dry-run", "--output", "csv", *force)
    assert ended.out.splitlines()[1] == (
        "1,killed,w-7 may still run it" if force else "1,requested,"
    )
    assert (ended.code, ended.err) == (0, "pgq: a dry run: nothing was changed\n")
    after = session.execute("select j.*, j.xmin::text from pgq.jobs as j").fetchall()
    assert after == before


def test_what_a_job_said_last_is_escaped(session: psycopg.Connection, here: Here) -> None:
    add_worker(session, 7, host="\x1b[2J\r\n")
    add_job(session, 1, status="running", worker_id=7)
    for output in ("table", "json", "csv"):
        ended = here("kill", "1", "--wait", "0.01s", "--output", output)
        assert "[2J" in ended.out
        assert all(line.isprintable() for line in ended.out.split("\n"))


def test_a_command_of_a_worker_is_killed(db: str, pgq: Run) -> None:
    with starting(db, {}) as workers, psycopg.connect(db, autocommit=True) as conn:
        worker = workers.start("--exec", "sleep 300")
        worker.seen("worker started")
        job_id = jobs.enqueue(conn)
        wait_until(conn, "select status = 'running' from pgq.jobs")

        ended = pgq("kill", str(job_id), "--output", "jsonl", dsn=db)

    assert ended.code == 0, ended.err
    (row,) = map(json.loads, ended.out.splitlines())
    assert (row["id"], row["outcome"]) == (job_id, "killed")
    assert row["reason"].startswith("killed by an operator")
