"""A claim never takes more than its limit, whatever plan the server could come to."""

from collections.abc import Iterable
from itertools import chain, combinations

import pytest
from psycopg import sql

from pgq.calls.jobs import Place
from tests.support import jobs
from tests.support.jobs import Connection

PENDING, LIMIT, CLAIMS = 50, 3, 3
# What the claim does not pin itself.
CHOICES = (
    "enable_hashagg",
    "enable_hashjoin",
    "enable_indexonlyscan",
    "enable_indexscan",
    "enable_material",
    "enable_mergejoin",
    "enable_nestloop",
)


def subsets(names: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, size) for size in range(len(names) + 1))


def turn_off(conn: Connection, names: Iterable[str]) -> None:
    """For this transaction, and with no plan left that was made before."""
    for name in names:
        conn.execute(sql.SQL("set local {} = off").format(sql.Identifier(name)))
    conn.execute("discard plans")


@pytest.mark.parametrize("look", ["full", "from a place"])
@pytest.mark.parametrize("statistics", ["fresh", "none"])
def test_a_claim_keeps_to_its_limit_under_any_plan(
    conn: Connection, look: str, statistics: str
) -> None:
    worker_id = jobs.register(conn)
    jobs.fill(conn, PENDING)
    if statistics == "fresh":
        conn.execute("analyze pgq.jobs")
    (first,) = jobs.rows(conn, "select id, scheduled_at from pgq.jobs order by id limit 1")
    places = None if look == "full" else [Place("default", 0, first["scheduled_at"], first["id"])]
    expected = [first["id"] + step for step in range(LIMIT * CLAIMS)]

    for off in subsets(CHOICES):
        with conn.transaction(force_rollback=True):
            turn_off(conn, off)
            taken = [jobs.claim(conn, worker_id, LIMIT, places=places) for _ in range(CLAIMS)]
            running = jobs.rows(
                conn, "select id from pgq.jobs where status = 'running' order by id"
            )

        assert [job.id for claimed in taken for job in claimed] == expected, f"without {off}"
        assert [row["id"] for row in running] == expected, f"without {off}"
