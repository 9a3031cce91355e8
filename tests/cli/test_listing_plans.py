"""Looking at live jobs and dead letters reads no finished job, whatever the statistics say."""

from typing import Any

import psycopg
import pytest

from pgq import _sql

FINISHED = 50_000
LIVE = 300

PARAMETERS = {
    "queue": None, "kind": None, "error": None, "since": None, "age": None, "status": None,
    "limit": 20,
}  # fmt: skip

BOUNDS = {
    "list_pending_jobs": 2 * LIVE,
    "list_running_jobs": 2 * LIVE,
    "list_failed_jobs": 40,
    "list_jobs": 40,
    "count_queues": 6 * LIVE,
}
"""How many rows the scans of a statement may return or throw away."""

FILL = """
insert into pgq.jobs (kind, status, finished_at)
    select 'a', 'done', now() from generate_series(1, {finished});
insert into pgq.jobs (kind) select 'a' from generate_series(1, {live});
insert into pgq.jobs (kind, status, lease)
    select 'a', 'running', g from generate_series(1, {live}) as g;
insert into pgq.jobs (kind, status, finished_at, last_error)
    select 'a', 'failed', now(), 'boom' from generate_series(1, {live});
insert into pgq.jobs (kind, status, finished_at)
    select 'a', 'done', now() from generate_series(1, {finished});
"""


@pytest.fixture(params=["absent", "stale", "fresh"])
def crowded(request: pytest.FixtureRequest, conn: psycopg.Connection) -> psycopg.Connection:
    """A few live jobs between many finished ones; the statistics know nothing, an earlier state
    in which most jobs were pending, or the truth."""
    if request.param == "stale":
        conn.execute(
            f"insert into pgq.jobs (kind) select 'a' from generate_series(1, {FINISHED})".encode()
        )
        conn.execute("analyze pgq.jobs")
        conn.execute("update pgq.jobs set status = 'done', finished_at = now()")
    conn.execute(FILL.format(finished=FINISHED, live=LIVE).encode())
    if request.param == "fresh":
        conn.execute("analyze pgq.jobs")
    return conn


def rows_read(plan: Any) -> int:
    """How many rows the scans of a plan returned or threw away."""
    own = 0
    if "Scan" in plan["Node Type"] and "Bitmap Index" not in plan["Node Type"]:
        removed = plan.get("Rows Removed by Filter", 0) + plan.get(
            "Rows Removed by Index Recheck", 0
        )
        own = int((plan["Actual Rows"] + removed) * plan["Actual Loops"])
    return own + sum(map(rows_read, plan.get("Plans", [])))


def test_a_look_reads_no_more_than_it_must(crowded: psycopg.Connection) -> None:
    crowded.execute("set local max_parallel_workers_per_gather = 0")
    crowded.execute(_sql.query("prefer_indexes").encode())
    read = {name: rows_read(plan(crowded, name)) for name in BOUNDS}
    assert {name: rows for name, rows in read.items() if rows > BOUNDS[name]} == {}


def plan(conn: psycopg.Connection, name: str) -> Any:
    """The plan of a statement, as it went."""
    text = f"explain (analyze, timing off, format json) {_sql.query(name)}"
    ((answer,),) = conn.execute(text.encode(), PARAMETERS).fetchall()
    return answer[0]["Plan"]
