"""What the database refuses one job, or one session, harms no other."""

from datetime import timedelta

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import pgq
from pgq.db import WATCHFUL, conninfo
from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.workers import Workers, drain, starting

APP = ("--app", "tests.worker.handlers:app")
CURSE = """
create function public.refuse() returns trigger language plpgsql as
$$ begin raise 'cursed' using errcode = 'raise_exception'; end $$;
create trigger cursed before update on pgq.jobs for each row
when (new.status <> 'running' and old.payload ? 'cursed') execute function public.refuse();
"""


CURSED = "insert into pgq.jobs (kind, payload) values ('take all', '{\"cursed\": 1}')"


@pytest.mark.parametrize("spell", ["new.status = 'running'", "true"])
def test_a_job_that_the_database_does_not_let_run_keeps_no_other_from_it(
    db: str, spell: str
) -> None:
    with psycopg.connect(db, autocommit=True) as conn, starting(db, {}) as workers:
        conn.execute(CURSE.replace("new.status <> 'running'", spell).encode())
        conn.execute(CURSED.encode())
        jobs.fill(conn, 20, "take all")
        worker = workers.start(*APP)

        worker.seen("claim refused")
        wait_until(conn, "select count(*) = 20 from pgq.jobs where status = 'done'")
        jobs.enqueue(conn, "take all")
        wait_until(conn, "select count(*) = 21 from pgq.jobs where status = 'done'")

        (cursed,) = jobs.rows(conn, "select * from pgq.jobs where status <> 'done'")
        assert (cursed["status"], cursed["attempts"]) == ("pending", 0)
        if spell != "true":
            assert cursed["last_error"] == "the database refuses that it runs: cursed"
            assert jobs.due_in(conn, cursed["id"]) > timedelta(seconds=30)
        conn.execute("drop trigger cursed on pgq.jobs")
        conn.execute("update pgq.jobs set scheduled_at = now() where status = 'pending'")
        wait_until(conn, "select count(*) = 22 from pgq.jobs where status = 'done'")


def test_a_drain_ends_although_an_outcome_is_refused_and_says_so(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn, starting(db, {}) as workers:
        conn.execute(CURSE)
        conn.execute(CURSED.encode())
        jobs.fill(conn, 3, "take all")

        worker = workers.start(*APP, "--drain")

        assert worker.ended() == 1
        assert worker.seen("outcomes not written; these jobs run again")["jobs"] == 1
        assert jobs.counted(conn)["done"] == 3


def test_an_outcome_that_is_refused_does_not_keep_the_others_from_being_written(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn, starting(db, {}) as workers:
        conn.execute(CURSE)
        conn.execute(CURSED.encode())
        jobs.fill(conn, 20, "take all")
        worker = workers.start(*APP)

        worker.seen("outcome not written", kind="take all")
        wait_until(conn, "select count(*) = 20 from pgq.jobs where status = 'done'")
        conn.execute("drop trigger cursed on pgq.jobs")
        wait_until(conn, "select count(*) = 21 from pgq.jobs where status = 'done'")


def test_a_result_that_the_database_refuses_is_dropped_with_a_warning(
    db: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app = pgq.App()

    @app.job("report")
    async def report() -> str:
        return "x"

    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("alter table pgq.jobs add constraint theirs check (result is null)")
        job_id = jobs.enqueue(conn, "report", payload={})
        drain(db, app)
        assert jobs.row(conn, job_id)["status"] == "done"

    lines = capsys.readouterr().err.splitlines()
    (said,) = [line for line in lines if " job done without its result " in line]
    assert f" warning job done without its result job={job_id} kind=report " in said
    assert "theirs" in said


def test_an_outcome_that_is_refused_is_not_tried_again_with_each_job_that_ends(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn, starting(db, {}) as workers:
        conn.execute(CURSE)
        conn.execute(CURSED.encode())
        worker = workers.start(*APP)
        worker.seen("outcome not written")

        for _ in range(100):
            job_id = jobs.enqueue(conn, "take all")
            wait_until(conn, "select status = 'done' from pgq.jobs where id = %s", job_id)

        assert len(worker.log("outcome not written")) < 10


def test_a_session_that_is_ended_for_its_idleness_is_replaced(db: str) -> None:
    app = pgq.App()

    @app.job("long")
    def long(job: pgq.Job) -> None:
        job.cancelled.wait(1)

    with psycopg.connect(db, autocommit=True) as conn:
        statement = sql.SQL("alter database {} set idle_session_timeout = '200ms'")
        conn.execute(statement.format(sql.Identifier(conn.info.dbname)))
    with psycopg.connect(db, autocommit=True, options="-c idle_session_timeout=0") as conn:
        jobs.fill(conn, 2, "long")
        drain(db, app, concurrency=1)

        assert jobs.counted(conn)["done"] == 2


def test_more_lost_jobs_than_one_reap_takes_are_all_given_back(
    queue: Connection, fleet: Workers
) -> None:
    dead = jobs.register(queue)
    queue.execute(
        "insert into pgq.jobs (kind, status, lease, worker_id, attempts)"
        " select 'quick', 'running', n, %s, 1 from generate_series(1, 2100) as n",
        (dead,),
    )
    queue.execute("update pgq.workers set died_at = now() where id = %s", (dead,))

    worker = fleet.start(*APP)
    wait_until(queue, "select count(*) = 2100 from pgq.jobs where status = 'done'")

    assert sum(line["jobs"] for line in worker.log("dead worker's jobs given back")) == 2100


@pytest.mark.parametrize("own", [{"keepalives_idle": "99"}, {}])
def test_a_connection_notices_that_its_other_end_is_gone(own: dict[str, str]) -> None:
    given = conninfo_to_dict(conninfo(make_conninfo("host=h", **own), application_name="x"))

    assert {name: given[name] for name in WATCHFUL} == WATCHFUL | own
