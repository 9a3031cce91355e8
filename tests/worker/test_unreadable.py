"""Payloads that jsonb holds and Python cannot read harm only their own job."""

import json
from datetime import timedelta
from pathlib import Path

import psycopg
from psycopg import sql

import pgq
from tests.support import jobs
from tests.support.jobs import Connection
from tests.support.workers import drain

LONG = '{"n": 1e5000}'
DEEP = '{"a":' * 3000 + "1" + "}" * 3000


def try_among_others(conn: Connection, dsn: str, payload: str) -> tuple[str, str | None]:
    """Drain a job of this payload between others; gives its status and error."""
    app = pgq.App()

    @app.job("work")
    async def work(**payload: object) -> None: ...

    jobs.fill(conn, 5)
    insert = "insert into pgq.jobs (kind, payload) values ('work', %s::jsonb) returning id"
    row = conn.execute(insert, (payload,)).fetchone()
    assert row is not None
    jobs.fill(conn, 5)

    drain(dsn, app)

    others = "select count(*) from pgq.jobs where status = 'done' and id <> %s"
    assert conn.execute(others, row).fetchone() == (10,)
    found = conn.execute("select status, last_error from pgq.jobs where id = %s", row).fetchone()
    assert found is not None
    return found[0], found[1]


def test_a_payload_with_a_number_too_long_fails_for_good_by_itself(
    shared: str, queue: Connection
) -> None:
    status, error = try_among_others(queue, shared, LONG)

    assert status == "failed"
    assert error is not None
    assert "a number too long" in error


def test_a_payload_nested_too_deeply_harms_no_other(shared: str, queue: Connection) -> None:
    status, error = try_among_others(queue, shared, DEEP)

    # Some versions of Python can read it.
    assert (status, error) == ("done", None) or (
        status == "failed" and "nested too deeply" in str(error)
    )


def test_a_command_gets_the_text_of_a_payload_that_python_cannot_read(
    shared: str, queue: Connection, tmp_path: Path
) -> None:
    queue.execute("insert into pgq.jobs (kind, payload) values ('work', '{\"n\": 1e5000}')")

    drain(shared, command=f"cat > {tmp_path}/payload")

    assert jobs.counted(queue)["done"] == 1
    text = (tmp_path / "payload").read_text()
    assert json.loads(text, parse_int=str)["n"] == "1" + "0" * 5000


def test_a_database_with_another_isolation_by_default_is_worked_all_the_same(db: str) -> None:
    app = pgq.App()

    @app.job("work")
    async def work() -> None: ...

    with psycopg.connect(db, autocommit=True) as conn:
        name = sql.Identifier(conn.info.dbname)
        level = "alter database {} set default_transaction_isolation = 'serializable'"
        conn.execute(sql.SQL(level).format(name))
        jobs.fill(conn, 3)
    drain(db, app)

    with psycopg.connect(db) as conn:
        assert jobs.counted(conn)["done"] == 3


def test_the_styles_of_dates_and_intervals_do_not_matter(db: str) -> None:
    app = pgq.App()

    @app.job("work", timeout=timedelta(minutes=1))
    async def work() -> None: ...

    with psycopg.connect(db, autocommit=True) as conn:
        for setting in ("datestyle = 'German, DMY'", "intervalstyle = 'iso_8601'"):
            name = sql.Identifier(conn.info.dbname)
            conn.execute(sql.SQL("alter database {} set " + setting).format(name))
        conn.execute("insert into pgq.jobs (kind, timeout) values ('work', '1 day 2 hours')")
    with psycopg.connect(db, autocommit=True) as conn:
        job = pgq.enqueue(conn, "work", timeout=timedelta(hours=1), delay=timedelta(0))
        drain(db, app)
        assert pgq.wait(conn, job.id) is None
        assert jobs.counted(conn)["done"] == 2
