"""Enqueuing by function, by plain INSERT and by COPY: defaults, limits and refusals."""

from datetime import UTC, datetime, timedelta, timezone

import psycopg
import pytest

import pgq
from pgq import db
from pgq.calls import queues as queue_calls
from pgq.calls import workers as worker_calls
from pgq.calls.workers import KindDefaults
from pgq.errors import UsageError
from pgq.model import NewJob
from tests.support import jobs
from tests.support.jobs import Connection

MINUTE = timedelta(minutes=1)
LIMIT = 1_048_576


def refusal(conn: Connection, job: NewJob, payload: str = "{}") -> str:
    """What the database says to a job that no client has checked."""
    with pytest.raises(UsageError) as refused, conn.transaction():
        db.run(conn, queue_calls.enqueue(job, payload))
    return str(refused.value)


def padded(size: int) -> str:
    """A payload whose text has this many bytes."""
    return '{"a": "' + "x" * (size - 9) + '"}'


def test_a_plain_insert_is_a_job(conn: Connection) -> None:
    conn.execute("""insert into pgq.jobs (kind, payload) values ('mail', '{"to": "ann"}')""")

    (row,) = jobs.rows(conn, "select * from pgq.jobs")
    assert (row["queue"], row["status"], row["priority"]) == ("default", "pending", 0)
    assert (row["attempts"], row["max_attempts"], row["timeout"]) == (0, 3, None)
    assert row["scheduled_at"] == row["created_at"] == jobs.now(conn)
    assert jobs.claim_one(conn, jobs.register(conn)).payload == {"to": "ann"}


def test_copy_brings_jobs_in(conn: Connection) -> None:
    with conn.cursor().copy("copy pgq.jobs (kind, payload) from stdin") as copy:
        for number in range(1000):
            copy.write_row(("mail", f'{{"number": {number}}}'))

    claimed = jobs.claim(conn, jobs.register(conn), 1000)

    assert [job.payload["number"] for job in claimed] == list(range(1000))


def test_what_a_job_leaves_out_comes_from_its_kind(conn: Connection) -> None:
    mail = KindDefaults("mail", "mails", 7, MINUTE)
    bare = KindDefaults("bare", None, None, None)
    db.run(conn, worker_calls.declare_kinds([mail, bare]))

    single = jobs.row(conn, jobs.enqueue(conn, "mail"))
    (bulk,) = pgq.enqueue_many(conn, [NewJob("mail")])
    explicit = jobs.row(
        conn, jobs.enqueue(conn, "mail", queue="q", max_attempts=1, timeout=2 * MINUTE)
    )
    plain = jobs.row(conn, jobs.enqueue(conn, "bare"))

    for row in (single, jobs.row(conn, bulk.id)):
        assert (row["queue"], row["max_attempts"], row["timeout"]) == ("mails", 7, MINUTE)
    assert (explicit["queue"], explicit["max_attempts"]) == ("q", 1)
    assert explicit["timeout"] == 2 * MINUTE
    assert (plain["queue"], plain["max_attempts"], plain["timeout"]) == ("default", 3, None)


def test_declaring_a_kind_anew_writes_only_what_changed(conn: Connection) -> None:
    same, changed = KindDefaults("a", "q", 3, MINUTE), KindDefaults("b", None, 3, None)
    db.run(conn, worker_calls.declare_kinds([same, changed]))
    places = "select kind, ctid::text as place from pgq.kinds order by kind"
    before = jobs.rows(conn, places)

    db.run(conn, worker_calls.declare_kinds([same, KindDefaults("b", None, 4, None)]))

    after = jobs.rows(conn, places)
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_a_delay_counts_from_the_transaction_and_a_time_is_kept(conn: Connection) -> None:
    later = jobs.enqueue(conn, delay=MINUTE)
    instant = datetime(2030, 1, 31, 8, 0, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    dated = jobs.enqueue(conn, scheduled_at=instant)

    assert jobs.due_in(conn, later) == MINUTE
    assert jobs.row(conn, dated)["scheduled_at"] == datetime(2030, 1, 31, 2, 30, tzinfo=UTC)


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/New_York", "Pacific/Chatham"])
def test_the_zones_of_server_and_session_change_nothing(conn: Connection, zone: str) -> None:
    conn.execute("select set_config('timezone', %s, true)", (zone,))
    worker_id = jobs.register(conn)
    instant = datetime(2030, 1, 31, 8, 0, tzinfo=UTC)

    dated = jobs.enqueue(conn, scheduled_at=instant, unique_key="dated")
    due = jobs.enqueue(conn)
    conn.execute("insert into pgq.jobs (kind, scheduled_at) values ('iso', '2030-01-31T08:00:00Z')")
    claimed = jobs.claim(conn, worker_id)
    jobs.finish(conn, worker_id, *claimed)

    assert [job.id for job in claimed] == [due]
    assert jobs.row(conn, dated)["scheduled_at"] == instant
    assert jobs.value(conn, "select scheduled_at from pgq.jobs where kind = 'iso'") == instant
    assert jobs.value(conn, "select now() - minute from pgq.throughput") < MINUTE
    assert jobs.due_in(conn, jobs.enqueue(conn, delay=MINUTE)) == MINUTE


def test_every_instant_is_kept_with_its_zone(conn: Connection) -> None:
    naive = jobs.rows(
        conn,
        "select table_name, column_name from information_schema.columns"
        " where table_schema = 'pgq' and data_type in ('timestamp without time zone', 'date')",
    )
    assert naive == []


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        (NewJob(""), "kind: give 1 to 200 characters"),
        (NewJob("k" * 201), "kind: give 1 to 200 characters"),
        (NewJob("k", queue=""), "queue: give 1 to 200 characters"),
        (NewJob("k", queue="q" * 201), "queue: give 1 to 200 characters"),
        (NewJob("k", unique_key=""), "unique key: give 1 to 500 characters"),
        (NewJob("k", unique_key="u" * 501), "unique key: give 1 to 500 characters"),
        (NewJob("k", max_attempts=0), "max_attempts: give a number from 1 to 1000000"),
        (NewJob("k", max_attempts=1_000_001), "max_attempts: give a number from 1 to 1000000"),
        (NewJob("k", timeout=timedelta(0)), "timeout: give a duration above 0"),
        (NewJob("k", timeout=timedelta(days=3651)), "timeout: give a duration above 0"),
        (NewJob("k", priority=32768), "smallint out of range"),
        (NewJob("k", priority=-32769), "smallint out of range"),
        (NewJob("k", delay=timedelta(seconds=-1)), "the delay must not be negative"),
        (NewJob("k", delay=timedelta(days=10**8)), "scheduled_at: give a time between"),
        (NewJob("k", scheduled_at=datetime(1899, 1, 1, tzinfo=UTC)), "scheduled_at: give a time"),
        (
            NewJob("k", delay=MINUTE, scheduled_at=datetime(2030, 1, 1, tzinfo=UTC)),
            "give a delay or scheduled_at, not both",
        ),
    ],
)
def test_the_database_refuses_what_no_job_can_be(
    conn: Connection, job: NewJob, problem: str
) -> None:
    assert problem in refusal(conn, job)
    with pytest.raises(UsageError), conn.transaction():
        db.run(conn, queue_calls.enqueue_many([NewJob("fine"), job], ["{}", "{}"]))
    assert jobs.value(conn, "select count(*) from pgq.jobs") == 0


@pytest.mark.parametrize(
    "payload", ["[]", "null", "1", '"text"', '{"a": "\\u0000"}', '{"a": NaN}', '{"a": "\\ud800"}']
)
def test_the_database_refuses_a_payload_that_it_cannot_hold(conn: Connection, payload: str) -> None:
    refusal(conn, NewJob("k"), payload)
    assert jobs.value(conn, "select count(*) from pgq.jobs") == 0


@pytest.mark.parametrize("instant", ["infinity", "-infinity", "10000-01-01Z", "1899-12-31Z"])
def test_no_insert_schedules_a_time_that_clients_cannot_read(
    conn: Connection, instant: str
) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="jobs_scheduled_at"):
        conn.execute(
            "insert into pgq.jobs (kind, scheduled_at) values ('k', %s::timestamptz)", (instant,)
        )


def test_a_payload_of_20_kilobytes_is_nothing_special(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    payload = {"text": "é" * 10_000, "list": list(range(1000))}
    jobs.enqueue(conn, payload=payload)

    assert jobs.claim_one(conn, worker_id).payload == payload


def test_the_limit_of_a_payload_is_exact_and_a_setting(conn: Connection) -> None:
    db.run(conn, queue_calls.enqueue(NewJob("k"), padded(LIMIT)))
    assert "payload: larger than the database allows" in refusal(
        conn, NewJob("k"), padded(LIMIT + 1)
    )

    conn.execute("select set_config('pgq.max_payload_bytes', '100', true)")
    assert db.run(conn, queue_calls.payload_limit()) == 100
    db.run(conn, queue_calls.enqueue(NewJob("k"), padded(100)))
    refusal(conn, NewJob("k"), padded(101))

    conn.execute("select set_config('pgq.max_payload_bytes', '2000000', true)")
    pgq.enqueue(conn, "k", {"a": "x" * 1_900_000})


def test_the_database_allows_a_megabyte_where_nothing_is_set(conn: Connection) -> None:
    assert db.run(conn, queue_calls.payload_limit()) == LIMIT


def test_a_bulk_is_not_bounded_by_the_parameters_of_a_statement(conn: Connection) -> None:
    answers = pgq.enqueue_many(conn, (NewJob("k", {"n": n}) for n in range(70_000)))

    ids = [answer.id for answer in answers]
    assert ids == sorted(set(ids))
    sums = jobs.value(conn, "select sum((payload->>'n')::bigint) from pgq.jobs")
    assert (len(ids), sums) == (70_000, sum(range(70_000)))
