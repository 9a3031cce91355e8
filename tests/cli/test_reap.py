"""`pgq reap` and `pgq requeue --stuck`: what is proven dead goes back, and nothing else."""

import itertools
import json
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import LiteralString

import psycopg
import pytest

from tests.cli.conftest import Here, Run, add_job, add_worker, command, variables
from tests.support import jobs
from tests.support.databases import wait_until

WATCHING: LiteralString = (
    "select count(*) = %s from pg_catalog.pg_stat_activity"
    " where application_name = 'pgq reap' and query like '%%A look before a reap%%'"
)


def lose(conn: psycopg.Connection, *job_ids: int, worker_id: int = 7, **worker: object) -> None:
    """Jobs that run under a worker which is marked dead."""
    add_worker(conn, worker_id, silence=20, **{"died_at": datetime.now(UTC), **worker})
    for job_id in job_ids:
        add_job(conn, job_id, status="running", attempts=1, worker_id=worker_id)


def test_reap_has_a_line_for_each_dead_worker(session: psycopg.Connection, here: Here) -> None:
    lose(session, 1, 2, 3)
    session.execute("update pgq.jobs set attempts = 3 where id = 2")
    session.execute("update pgq.jobs set cancel_requested_at = now() where id = 3")
    add_job(session, 4, status="running", worker_id=99)
    add_job(session, 5, status="running")
    add_worker(session, 8)
    add_job(session, 6, status="running", worker_id=8)

    ended = here("reap")

    became = "1 job given back, 1 job failed with no attempt left, 1 job cancelled as was asked"
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "no worker, nobody's: 1 job given back",
        f"w-7 (web-1, pid 4711), silent for 20s, and 1m are forgiven: {became}",
        "w-99, unknown: 1 job given back",
    ]
    assert jobs.row(session, 6)["status"] == "running"
    again = here("reap")
    assert (again.code, again.out) == (0, "")
    assert again.err == "pgq: no job of a dead worker was found\n"
    audited = jobs.rows(session, "select action, changed from pgq.audit")
    assert audited == [{"action": "reap", "changed": 5}]


def test_reap_gives_rows_to_programs(session: psycopg.Connection, here: Here) -> None:
    lose(session, 1, 2, lock_key=7)
    assert json.loads(here("reap", "--output", "json").out) == [
        {
            "worker_id": 7, "host": "web-1", "pid": 4711,
            "proof": "silent for 20s, its lock is gone",
            "pending": 2, "failed": 0, "cancelled": 0, "refused": 0,
        }
    ]  # fmt: skip
    assert here("reap", "--output", "json").out == "[]\n"


def test_a_dry_run_of_a_reap_changes_nothing(session: psycopg.Connection, here: Here) -> None:
    lose(session, 1)
    for verb in (["reap"], ["requeue", "--stuck"]):
        ended = here(*verb, "--dry-run")
        assert (ended.code, ended.err) == (0, "pgq: a dry run: nothing was changed\n")
        assert "silent for 20s" in ended.out
        assert (
            "1 job would be given back" if verb == ["reap"] else "would be requeued"
        ) in ended.out
    assert json.loads(here("requeue", "--stuck", "--dry-run", "-o", "jsonl").out)["outcome"] == (
        "requeued"
    )
    assert jobs.row(session, 1)["status"] == "running"
    assert jobs.rows(session, "select * from pgq.audit") == []


def test_a_dry_run_of_a_reap_ends_no_session_of_a_lost_attempt(
    session: psycopg.Connection, here: Here, shared: str
) -> None:
    lose(session, 1)
    session.execute("update pgq.jobs set lease = 11 where id = 1")
    with psycopg.connect(shared, application_name=f"pgq-job-1-{11:016x}") as own:
        here("reap", "--dry-run")
        own.execute("select pg_catalog.pg_sleep(0.1)")

        here("reap")
        with pytest.raises(psycopg.errors.AdminShutdown):
            own.execute("select pg_catalog.pg_sleep(60)")


def test_thousands_of_lost_jobs_go_back_in_bounded_transactions(
    session: psycopg.Connection, here: Here
) -> None:
    lose(session)
    session.execute(
        "insert into pgq.jobs (kind, status, lease, worker_id)"
        " select 'a', 'running', n, 7 from generate_series(1, 2500) as n"
    )
    assert "only the first 1000 jobs were tried" in here("reap", "--dry-run").err
    assert "2500 jobs given back" in here("reap").out
    audited = jobs.rows(session, "select changed from pgq.audit order by id")
    assert [row["changed"] for row in audited] == [1000, 1000, 500]


def test_a_job_that_is_refused_is_named_and_the_others_go_back(
    session: psycopg.Connection, here: Here
) -> None:
    lose(session, *range(1, 22))
    session.execute(
        "alter table pgq.jobs add constraint theirs check (id <> 7 or lease is not null)"
    )
    try:
        assert "job 7 would not be given back" in here("reap", "--dry-run").err
        for reaped in (["reap"], ["reap"], ["requeue", "--stuck"]):
            ended = here(*reaped, "--output", "jsonl")
            assert ended.code == 1
            assert 'job 7 was not given back: new row for relation "jobs" violates' in ended.err
            assert "theirs" in ended.err
    finally:
        session.execute("alter table pgq.jobs drop constraint theirs")
    statuses = jobs.rows(session, "select status, count(*) as jobs from pgq.jobs group by 1")
    assert {row["status"]: row["jobs"] for row in statuses} == {"pending": 20, "running": 1}
    assert here("reap").code == 0
    assert jobs.row(session, 7)["status"] == "pending"


def test_stuck_says_why_for_each_job_and_leaves_the_living_alone(
    session: psycopg.Connection, here: Here
) -> None:
    lose(session, 1, lock_key=7)
    add_worker(session, 8, silence=1)
    add_job(session, 2, status="running", worker_id=8, attempts=2)

    ended = here("requeue", "--stuck", "--output", "json")

    assert ended.code == 0
    requeued, left = json.loads(ended.out)
    assert requeued == {
        "id": 1, "outcome": "requeued", "worker_id": 7,
        "reason": "w-7 (web-1, pid 4711): silent for 20s, its lock is gone",
    }  # fmt: skip
    assert (left["id"], left["outcome"], left["worker_id"]) == (2, "running", 8)
    assert left["reason"].startswith("w-8 (web-1, pid 4711) beat ")
    assert left["reason"].endswith("ago, it has no lock, 1m are forgiven")
    row = jobs.row(session, 2)
    assert (row["status"], row["attempts"], row["lease"]) == ("running", 2, 2)


def test_stuck_lists_no_more_than_a_hundred_of_the_living(
    session: psycopg.Connection, here: Here
) -> None:
    add_worker(session, 8)
    session.execute(
        "insert into pgq.jobs (kind, status, lease, worker_id)"
        " select 'a', 'running', n, 8 from generate_series(1, 120) as n"
    )
    ended = here("requeue", "--stuck")
    assert (ended.code, ended.out.count("running")) == (0, 100)
    assert "the 100 oldest" in ended.err


def test_stuck_and_ids_exclude_each_other(here: Here) -> None:
    for arguments in (["--stuck", "7"], ["--stuck", "--force"], ["7", "--embedded"]):
        ended = here("requeue", *arguments)
        assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)


def test_a_worker_that_seems_dead_is_watched_before_it_is_buried(
    shared: str, session: psycopg.Connection, pgq: Run
) -> None:
    add_worker(session, 7, silence=1, lock_key=7)
    add_job(session, 1, status="running", worker_id=7)

    ended = pgq("reap", "--output", "jsonl", dsn=shared)

    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out)["pending"] == 1
    assert jobs.row(session, 1)["status"] == "pending"


def test_a_worker_that_crashes_again_and_again_keeps_no_other_from_being_reaped(
    shared: str, session: psycopg.Connection, pgq: Run
) -> None:
    add_worker(session, 7, silence=30, lock_key=7)
    add_job(session, 1, status="running", attempts=1, worker_id=7)
    started, ended = threading.Event(), threading.Event()

    def crash() -> None:
        with psycopg.connect(shared, autocommit=True) as conn:
            for life in itertools.count(100):
                add_worker(conn, life, lock_key=life)
                started.set()
                if ended.wait(0.5):
                    return

    crashing = threading.Thread(target=crash)
    crashing.start()
    try:
        assert started.wait(20)
        reaped = pgq("reap", "--output", "jsonl", dsn=shared)
    finally:
        ended.set()
        crashing.join()

    assert (reaped.code, reaped.err) == (0, "")
    assert json.loads(reaped.out)["pending"] == 1
    assert jobs.row(session, 1)["status"] == "pending"
    living = "select count(*) from pgq.workers where died_at is null"
    assert jobs.value(session, living) > 0, "the last of its lives are not proven dead yet"


def test_a_silent_worker_whose_claim_is_under_way_is_left_alone_and_said(
    shared: str, session: psycopg.Connection, pgq: Run
) -> None:
    add_worker(session, 7, silence=30, lock_key=7)
    with psycopg.connect(shared) as claiming:
        claiming.execute("select from pgq.workers for key share")
        ended = pgq("reap", dsn=shared)

    assert (ended.code, ended.out) == (1, "")
    assert "pgq: silent workers that were left alone: 1 (a claim is under way" in ended.err


def test_a_worker_that_beats_while_it_is_watched_by_a_stopped_reaper_lives(
    shared: str, session: psycopg.Connection
) -> None:
    add_worker(session, 7, silence=30, lock_key=7)
    add_job(session, 1, status="running", worker_id=7)
    with (
        psycopg.connect(shared, autocommit=True) as beating,
        subprocess.Popen(
            command("reap"), env=variables(shared), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as reaper,
    ):
        wait_until(session, WATCHING, 1)
        reaper.send_signal(signal.SIGSTOP)
        beating.execute("select pg_advisory_lock(8)")
        beating.execute("select * from pgq.heartbeat(7, 8)")
        reaper.send_signal(signal.SIGCONT)
        out, err = reaper.communicate(timeout=60)

    assert (reaper.returncode, out) == (0, b"")
    assert err == b"pgq: no job of a dead worker was found\n"
    assert jobs.row(session, 1)["status"] == "running"


def test_two_reapers_at_once_give_each_job_back_once(
    shared: str, session: psycopg.Connection, pgq: Run
) -> None:
    add_worker(session, 7, silence=30, lock_key=7)
    for job_id in range(1, 51):
        add_job(session, job_id, status="running", attempts=1, worker_id=7)

    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(pgq, "reap", "--output", "jsonl", dsn=shared) for _ in range(2)]
        ended = [reaper.result() for reaper in both]

    assert [reaper.code for reaper in ended] == [0, 0]
    rows = [json.loads(line) for reaper in ended for line in reaper.out.splitlines()]
    assert sum(row["pending"] for row in rows) == 50
    losses = jobs.rows(session, "select distinct losses, status from pgq.jobs")
    assert losses == [{"losses": 1, "status": "pending"}]


def test_nobody_is_declared_dead_by_who_saw_the_clock_too_long_ago(elder: jobs.Connection) -> None:
    add_worker(elder, 7, silence=timedelta(hours=1).total_seconds(), lock_key=7)
    add_job(elder, 1, status="running", worker_id=7)
    reap = "select job_id from pgq.reap_by_hand(10, clock_timestamp() - %s, now(), 'ann')"

    assert jobs.rows(elder, reap, timedelta(seconds=3)) == []
    assert jobs.rows(elder, reap, timedelta(seconds=1)) == [{"job_id": 1}]


@pytest.mark.parametrize("verb", [["reap"], ["requeue", "--stuck"]])
def test_a_reap_does_not_work_on_the_private_server_unasked(verb: list[str], pgq: Run) -> None:
    ended = pgq(*verb, PGQ_SERVER_HOME="/dev/null/nowhere")
    assert (ended.code, ended.out, ended.err.count("\n")) == (3, "", 1)
    assert "--embedded" in ended.err


@pytest.mark.parametrize("verb", [["reap"], ["reap", "--dry-run"], ["requeue", "--stuck"]])
def test_a_database_with_another_isolation_by_default_is_reaped_all_the_same(
    shared: str, session: psycopg.Connection, pgq: Run, verb: list[str]
) -> None:
    lose(session, 1)

    ended = pgq(*verb, dsn=shared, PGOPTIONS="-c default_transaction_isolation=serializable")

    assert ended.code == 0, ended.err
    assert jobs.row(session, 1)["status"] == ("running" if "--dry-run" in verb else "pending")
