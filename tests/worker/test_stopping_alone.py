"""How a worker stops while the database is away: within its grace, or at the second signal."""

from pathlib import Path
from signal import SIGTERM

import psycopg
import pytest

from tests.support import jobs
from tests.support.cluster import Cluster
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.workers import WorkerProcess, Workers, appears

APP = ("--app", "tests.worker.handlers:app", "-c", "1")


def cut_off(own: Cluster, hired: Workers, desk: Path, kind: str, *options: str) -> WorkerProcess:
    """A worker in the middle of a job, whose server has been stopped."""
    with psycopg.connect(hired.dsn, autocommit=True) as conn:
        jobs.fill(conn, 2, kind)
    worker = hired.start(*APP, *options)
    appears(desk / "started-1")
    own.stop("immediate")
    for loop in ("claim", "heartbeat"):
        worker.seen("database lost", loop=loop)
    return worker


@pytest.mark.parametrize("kind", ["hold", "hold a thread"])
def test_the_grace_bounds_a_drain_without_a_database(
    own: Cluster, hired: Workers, tmp_path: Path, kind: str
) -> None:
    worker = cut_off(own, hired, tmp_path, kind, "--grace", "0.5s")

    worker.send(SIGTERM)

    assert worker.ended() == 0
    assert worker.seen("outcomes not written")["jobs"] == 1


def test_a_drain_without_a_database_waits_for_its_return(
    own: Cluster, hired: Workers, tmp_path: Path
) -> None:
    worker = cut_off(own, hired, tmp_path, "hold")
    worker.send(SIGTERM)
    worker.seen("draining")
    (tmp_path / "go").touch()
    own.start()

    assert worker.ended() == 0
    with psycopg.connect(hired.dsn, autocommit=True) as conn:
        found = jobs.rows(conn, "select status, attempts, losses from pgq.jobs order by id")
    assert found == [
        {"status": "done", "attempts": 1, "losses": 0},
        {"status": "pending", "attempts": 0, "losses": 0},
    ]


def test_an_idle_worker_without_a_database_ends_at_the_first_signal(
    own: Cluster, home: str, hired: Workers
) -> None:
    worker = hired.start(*APP)
    with psycopg.connect(home, autocommit=True) as conn:
        wait_until(conn, "select bool_or(waiting) from pgq.workers")
    own.stop("immediate")
    for loop in ("claim", "heartbeat"):
        worker.seen("database lost", loop=loop)

    worker.send(SIGTERM)

    assert worker.ended() == 0


def test_a_farewell_that_is_not_answered_says_why_it_is_missing(
    queue: Connection, fleet: Workers
) -> None:
    queue.execute(
        "create function public.dawdle() returns trigger language plpgsql as"
        " $$ begin perform pg_catalog.pg_sleep(60); return new; end $$"
    )
    queue.execute(
        "create trigger dawdle before update on pgq.workers for each row"
        " when (new.stopped_at is not null) execute function public.dawdle()"
    )
    worker = fleet.hire(*APP)

    worker.send(SIGTERM)

    assert worker.ended() == 0
    said = worker.seen("farewell not written")
    assert said["error"] == "no answer from the database for 10 s"
