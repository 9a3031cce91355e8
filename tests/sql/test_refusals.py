"""One bad row never blocks the rest: jobs that the database refuses to give back."""

from collections.abc import Iterable

import psycopg
import pytest

from pgq import db
from pgq.calls import workers as worker_calls
from tests.support import jobs
from tests.support.jobs import Connection

REFUSE = """
create function pg_temp.refuse() returns trigger language plpgsql as $$
begin
    if new.kind = 'bad' and new.status <> 'running' then
        raise exception 'not this one' using errcode = '{state}';
    end if;
    return new;
end
$$;
create trigger refuse before update on pgq.jobs for each row execute function pg_temp.refuse();
"""


def lose(conn: Connection, kinds: Iterable[str]) -> list[int]:
    """Jobs of these kinds that a dead worker left running."""
    worker_id = jobs.register(conn)
    ids = [jobs.enqueue(conn, kind) for kind in kinds]
    assert len(jobs.claim(conn, worker_id, 10_000)) == len(ids)
    jobs.die(conn, worker_id)
    return ids


def refuse(conn: Connection, state: str = "P0001") -> None:
    """The application's own trigger: it refuses that a bad job leaves `running`."""
    conn.execute(REFUSE.replace("{state}", state).encode())


def refuse_at_commit(conn: Connection) -> None:
    """The same as a constraint that is checked at the end of the transaction."""
    refuse(conn)
    conn.execute("drop trigger refuse on pgq.jobs")
    conn.execute(
        "create constraint trigger refuse after update on pgq.jobs deferrable initially deferred"
        " for each row execute function pg_temp.refuse()"
    )


def heal(conn: Connection) -> None:
    conn.execute("drop trigger refuse on pgq.jobs")


def test_of_21_lost_jobs_one_is_refused_and_20_go_back(conn: Connection) -> None:
    ids = lose(conn, ["bad" if number == 7 else "good" for number in range(21)])
    refuse(conn)

    reaped = {job.job_id: job for job in db.run(conn, worker_calls.reap())}

    assert sorted(reaped) == ids
    bad = reaped.pop(ids[7])
    assert (bad.status, bad.error) == ("running", "not this one")
    assert {(job.status, job.error) for job in reaped.values()} == {("pending", None)}
    assert jobs.row(conn, bad.job_id)["status"] == "running"
    assert jobs.attempts(conn, bad.job_id) == []
    assert jobs.counted(conn)["retried"] == 20


def test_what_is_refused_at_commit_undoes_no_other(conn: Connection) -> None:
    bad, good = lose(conn, ["bad", "good"])
    refuse_at_commit(conn)

    assert jobs.reap(conn) == {bad: "running", good: "pending"}
    conn.execute("set constraints all immediate")  # as a commit does
    assert jobs.value(conn, "select job_id from pgq.refusals") == bad


def test_a_payload_beyond_a_lowered_limit_keeps_no_other_job_running(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    large = jobs.enqueue(conn, payload={"text": "".join(map(str, range(3000)))})
    small = jobs.enqueue(conn)
    jobs.claim(conn, worker_id)
    jobs.die(conn, worker_id)
    conn.execute("set local pgq.max_payload_bytes = 5000")

    assert jobs.reap(conn) == {large: "running", small: "pending"}
    (refusal,) = jobs.rows(conn, "select job_id, error from pgq.refusals")
    assert refusal["job_id"] == large
    assert "jobs_payload_size" in refusal["error"]


def test_bad_rows_in_front_do_not_fill_the_next_call(conn: Connection) -> None:
    worker_id = jobs.register(conn, "first", "second")
    bad = [jobs.enqueue(conn, "bad", queue="first") for _ in range(7)]
    good = [jobs.enqueue(conn, "good", queue="second") for _ in range(3)]
    jobs.claim(conn, worker_id, queues=["first", "second"])
    jobs.die(conn, worker_id)
    refuse(conn)

    first, second, third = (jobs.reap(conn, 5) for _ in range(3))

    assert set(first.values()) == {"running"}
    assert first.keys() | second.keys() == {*bad, *good}
    assert {job_id for job_id, status in second.items() if status == "pending"} == {*good}
    assert third == {}


def test_a_refused_job_is_tried_again_after_a_minute(conn: Connection) -> None:
    (job_id,) = lose(conn, ["bad"])
    refuse(conn)
    assert jobs.reap(conn) == {job_id: "running"}
    heal(conn)
    assert jobs.reap(conn) == {}

    conn.execute("update pgq.refusals set refused_at = refused_at - interval '61 seconds'")

    assert jobs.reap(conn) == {job_id: "pending"}


def test_an_operator_tries_a_refused_job_again_at_once_and_once(conn: Connection) -> None:
    (job_id,) = lose(conn, ["bad"])
    refuse(conn)
    jobs.reap(conn)
    conn.execute("update pgq.refusals set refused_at = refused_at - interval '1 second'")
    now = jobs.now(conn)
    call = worker_calls.reap_by_hand(
        limit=10, seen_at=now, began_at=now, actor="ann", rehearsal=False
    )

    assert [(job.job_id, job.error) for job in db.run(conn, call)] == [(job_id, "not this one")]
    assert db.run(conn, call) == []

    audited = jobs.rows(conn, "select actor, action, changed from pgq.audit")
    assert audited == [{"actor": "ann", "action": "reap", "changed": 1}]


@pytest.mark.parametrize("state", ["40P01", "53100", "55P03", "57P01"])
def test_what_is_no_fault_of_a_row_ends_the_call_and_refuses_nothing(
    conn: Connection, state: str
) -> None:
    lose(conn, ["good", "bad"])
    refuse(conn, state)

    with pytest.raises(psycopg.Error) as raised, conn.transaction():
        conn.execute("select * from pgq.reap()")

    assert raised.value.sqlstate == state
    assert jobs.value(conn, "select count(*) from pgq.refusals") == 0


def test_refusals_that_do_not_come_again_are_forgotten(conn: Connection) -> None:
    conn.execute(
        "insert into pgq.refusals (job_id, error, refused_at)"
        " values (1, 'x', now() - interval '61 minutes'), (2, 'x', now())"
    )

    conn.execute("select pgq.tidy()")

    assert jobs.rows(conn, "select job_id from pgq.refusals") == [{"job_id": 2}]


@pytest.mark.parametrize("forgotten_first", [True, False])
def test_a_lost_job_goes_back_before_or_after_its_worker_is_forgotten(
    conn: Connection, forgotten_first: bool
) -> None:
    (job_id,) = lose(conn, ["good"])
    forget = "delete from pgq.workers"
    if forgotten_first:
        conn.execute(forget)
    assert jobs.reap(conn) == {job_id: "pending"}
    if not forgotten_first:
        conn.execute(forget)

    row = jobs.row(conn, job_id)
    assert (row["attempts"], row["losses"], row["worker_id"]) == (1, 1, None)
    assert jobs.due_in(conn, job_id).total_seconds() == 0


def test_a_worker_that_cannot_be_marked_dead_keeps_no_other_from_it(elder: Connection) -> None:
    silent: list[tuple[int, int]] = []
    for lock_key in (4711, 4712):  # nobody holds them
        worker_id = jobs.register(elder, lock_key=lock_key)
        jobs.enqueue(elder)
        silent.append((worker_id, jobs.claim_one(elder, worker_id).id))
        jobs.fall_silent(elder, worker_id)
    elder.execute(
        "create function pg_temp.spare() returns trigger language plpgsql as $$ begin"
        f" if new.id = {silent[0][0]} and new.died_at is not null then raise 'not him'; end if;"
        " return new; end $$;"
        "create trigger spare before update on pgq.workers"
        " for each row execute function pg_temp.spare()".encode()
    )
    try:
        assert jobs.reap(elder) == {silent[1][1]: "pending"}
    finally:
        elder.execute("drop trigger spare on pgq.workers")
