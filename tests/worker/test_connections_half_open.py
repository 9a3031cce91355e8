"""Connections over which no answer comes any more, though nobody has closed them."""

from pathlib import Path
from typing import LiteralString

import pytest

from tests.support import diary, jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.proxy import Proxy
from tests.support.workers import Workers, appears

APP = ("--app", "tests.worker.impatient:app")
PATIENT = ("--app", "tests.worker.handlers:app")
LOOPS = ("claim", "finish", "heartbeat")
RESTS: LiteralString = (
    "select bool_or(state = 'idle' and query like '%%pgq.claim(%%') from pg_stat_activity"
    " where datname = current_database() and application_name = 'pgq worker claim'"
    " and state_change < now() - interval '0.3 seconds'"
)
"""Whether the claim loop is in one of its longer rests."""


@pytest.mark.parametrize("requests", [True, False], ids=["nothing passes", "replies stay"])
@pytest.mark.parametrize("loop", [*LOOPS, ""], ids=[*LOOPS, "all"])
def test_a_connection_without_answers_is_made_anew(
    proxy: Proxy, queue: Connection, fleet: Workers, tmp_path: Path, loop: str, requests: bool
) -> None:
    worker = fleet.hire(*APP, dsn=proxy.dsn)
    running = jobs.enqueue(queue, "keep a diary")
    jobs.enqueue(queue, "note and linger")
    wait_until(queue, "select count(*) = 1 from pgq.jobs where status = 'done'")
    wait_until(queue, "select status = 'running' from pgq.jobs where id = %s", running)
    wait_until(queue, "select bool_and(waiting) from pgq.workers")

    proxy.stall(f"pgq worker {loop}" if loop else "", requests=requests)
    if loop == "heartbeat":
        worker.seen("database back", loop=loop)
    jobs.fill(queue, 10, "note and linger")
    (tmp_path / "go").touch()

    wait_until(queue, "select count(*) = 12 from pgq.jobs where status = 'done'")
    for name in [loop] if loop else LOOPS:
        worker.seen("database back", loop=name)
    for name in LOOPS:
        lost = worker.said("database lost", loop=name)
        assert lost == worker.said("database back", loop=name) <= 1
    assert jobs.counted(queue)["done"] == 12
    assert len(diary.read(tmp_path / "diary")) == 12
    assert jobs.rows(queue, "select distinct attempts, losses from pgq.jobs") == [
        {"attempts": 1, "losses": 0}
    ]
    assert jobs.rows(queue, "select id, died_at from pgq.workers") == [
        {"id": worker.id, "died_at": None}
    ]


def test_a_claim_that_arrives_after_its_worker_gave_it_up_strands_no_job(
    proxy: Proxy, queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    fleet.hire(*APP, "-c", "1", "--kind", "hold", "--kind", "quick", dsn=proxy.dsn)
    wait_until(queue, "select bool_or(waiting) from pgq.workers")
    # From now on, only claims come from there.
    wait_until(queue, RESTS)
    proxy.stall("pgq worker claim")
    jobs.enqueue(queue, "hold")
    appears(tmp_path / "started-1")
    # The worker is full now and claims nothing, but for what it sent and gave up.
    job_id = jobs.enqueue(queue, "quick")
    proxy.flow()
    (tmp_path / "go").touch()

    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)
    assert jobs.row(queue, job_id)["attempts"] == 1


def test_a_worker_that_is_cut_off_stops_its_jobs_before_others_run_them(
    proxy: Proxy, queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    queue.execute(
        "insert into pgq.queues (queue, visibility_timeout) values ('default', '10 seconds')"
        " on conflict (queue) do update set visibility_timeout = excluded.visibility_timeout"
    )
    cut_off = fleet.hire(*PATIENT, dsn=proxy.dsn)
    jobs.enqueue(queue, "keep a diary")
    wait_until(queue, "select bool_or(status = 'running') from pgq.jobs")
    other = fleet.hire(*PATIENT)

    proxy.stall(new=True)
    wait_until(queue, "select bool_and(worker_id = %s) from pgq.jobs", other.id)
    (tmp_path / "go").touch()
    wait_until(queue, "select bool_and(status = 'done') from pgq.jobs")
    runs = diary.read(tmp_path / "diary")
    assert [run.pid for run in runs] == [cut_off.pid, other.pid]
    assert diary.overlaps(runs) == []

    proxy.flow()
    cut_off.seen("worker started", times=2)
