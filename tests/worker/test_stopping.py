"""How a worker stops: the first signal drains, the second hands back, the third ends it."""

from datetime import timedelta
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM, Signals

import pytest

import pgq
from tests.support import jobs, workers
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.lifelines import lifeline
from tests.support.workers import WorkerProcess, Workers, appears, run_worker

APP = ("--app", "tests.worker.handlers:app", "-c", "1")


def holding(
    fleet: Workers, queue: Connection, desk: Path, kind: str, *options: str
) -> WorkerProcess:
    """A worker in the middle of a job, with another one to do."""
    jobs.fill(queue, 2, kind)
    worker = fleet.start(*APP, *options)
    appears(desk / "started-1")
    return worker


def stopped(queue: Connection, worker: WorkerProcess) -> bool:
    """Whether the worker has said farewell."""
    told: bool = jobs.value(
        queue, "select stopped_at is not null from pgq.workers where id = %s", worker.id
    )
    return told


def untouched(queue: Connection) -> bool:
    """Whether every job is pending as if it had never been claimed."""
    rows = jobs.rows(queue, "select distinct status, attempts, losses, lease from pgq.jobs")
    recorded = jobs.value(queue, "select count(*) from pgq.attempts")
    return recorded == 0 and rows == [
        {"status": "pending", "attempts": 0, "losses": 0, "lease": None}
    ]


@pytest.mark.parametrize("kind", ["hold", "ignore all"])
def test_the_first_signal_drains(
    fleet: Workers, queue: Connection, tmp_path: Path, kind: str
) -> None:
    worker = holding(fleet, queue, tmp_path, kind)

    worker.send(SIGTERM)
    worker.seen("draining")
    (tmp_path / "go").touch()

    assert worker.ended() == 0
    assert stopped(queue, worker)
    statuses = jobs.rows(queue, "select status, attempts from pgq.jobs order by id")
    assert statuses == [{"status": "done", "attempts": 1}, {"status": "pending", "attempts": 0}]


@pytest.mark.parametrize("kind", ["hold", "hold a thread"])
@pytest.mark.parametrize(("first", "second"), [(SIGTERM, SIGINT), (SIGINT, SIGHUP)])
def test_the_second_signal_hands_back_uncharged(
    fleet: Workers, queue: Connection, tmp_path: Path, kind: str, first: Signals, second: Signals
) -> None:
    worker = holding(fleet, queue, tmp_path, kind)

    worker.send(first)
    worker.seen("draining", signal=first.name)
    worker.send(second)

    assert worker.ended() == 128 + second
    assert stopped(queue, worker)
    assert untouched(queue)


def test_a_command_is_handed_back_when_it_is_gone(
    fleet: Workers, queue: Connection, tmp_path: Path
) -> None:
    jobs.fill(queue, 2)
    with lifeline(tmp_path / "line") as line:
        worker = fleet.start(
            "--exec", 'exec 9>"$DESK/line"; echo up >&9; (sleep 300 &); sleep 300', "-c", "1"
        )
        assert line.heard() == "up\n"
        worker.send(SIGTERM)
        worker.seen("draining")
        worker.send(SIGTERM)
        assert line.heard() == ""

    assert worker.ended() == 128 + SIGTERM
    assert stopped(queue, worker)
    assert untouched(queue)


def test_the_third_signal_ends_at_once(fleet: Workers, queue: Connection, tmp_path: Path) -> None:
    worker = holding(fleet, queue, tmp_path, "ignore all")

    worker.send(SIGTERM)
    worker.seen("draining")
    worker.send(SIGINT)
    worker.seen("handing")
    worker.send(SIGTERM)

    assert worker.ended() == 128 + SIGTERM
    assert not stopped(queue, worker)
    assert jobs.value(queue, "select count(*) from pgq.jobs where status = 'running'") == 1


def test_the_grace_bounds_the_drain(fleet: Workers, queue: Connection, tmp_path: Path) -> None:
    worker = holding(fleet, queue, tmp_path, "hold", "--grace", "0.1s")

    worker.send(SIGTERM)

    assert worker.ended() == 0
    assert worker.said("the grace is over: handing running jobs back") == 1
    assert stopped(queue, worker)
    assert untouched(queue)


def test_a_signal_after_the_grace_cuts_no_job_short(
    fleet: Workers, queue: Connection, tmp_path: Path
) -> None:
    worker = holding(fleet, queue, tmp_path, "clean up", "--grace", "0.1s")
    worker.send(SIGTERM)
    appears(tmp_path / "asked")

    worker.send(SIGINT)
    worker.seen("handing")
    (tmp_path / "go").touch()

    assert worker.ended() == 128 + SIGINT
    assert not worker.said("handed back while it still ran")
    assert untouched(queue)


def test_a_thread_that_does_not_stop_is_handed_back_as_the_process_ends(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, "ignore all")
    worker = fleet.start(*APP)
    appears(tmp_path / "started-1")

    worker.send(SIGTERM)
    worker.seen("draining")
    worker.send(SIGINT)

    assert worker.ended() == 128 + SIGINT
    assert untouched(queue)
    worker.seen("handed back while it still ran", job=job_id)


def test_an_idle_worker_stops_at_the_first_signal(fleet: Workers, queue: Connection) -> None:
    worker = fleet.start(*APP)
    wait_until(queue, "select bool_or(waiting) from pgq.workers")

    worker.send(SIGINT)

    assert worker.ended() == 0
    assert jobs.rows(queue, "select waiting, lock_key from pgq.workers") == [
        {"waiting": False, "lock_key": None}
    ]


def test_drain_ends_when_nothing_is_due(shared: str, queue: Connection) -> None:
    now, later = jobs.enqueue(queue), jobs.enqueue(queue, delay=timedelta(hours=1))

    ended = run_worker("--exec", "true", "--drain", dsn=shared)

    assert (ended.returncode, ended.stdout) == (0, "")
    assert jobs.row(queue, now)["status"] == "done"
    assert jobs.row(queue, later)["attempts"] == 0


def test_drain_follows_a_chain_of_jobs_from_lane_to_lane(shared: str, queue: Connection) -> None:
    app = pgq.App()

    @app.job("ping")
    async def ping(left: int) -> None:
        if left:
            jobs.enqueue(queue, "pong", payload={"left": left - 1})

    @app.job("pong")
    def pong(left: int) -> None:
        if left:
            jobs.enqueue(queue, "ping", payload={"left": left - 1})

    jobs.enqueue(queue, "ping", payload={"left": 60})
    workers.drain(shared, app)

    assert jobs.counted(queue)["done"] == 61


def test_signals_are_heard_while_a_handler_blocks_the_event_loop(
    queue: Connection, fleet: Workers
) -> None:
    job_id = jobs.enqueue(queue, "block the loop", payload={"seconds": 300})
    worker = fleet.start(*APP)
    wait_until(queue, "select status = 'running' from pgq.jobs where id = %s", job_id)

    worker.send(SIGTERM)
    worker.seen("draining")
    worker.send(SIGINT)
    worker.seen("handing running jobs back")
    worker.send(SIGTERM)

    assert worker.ended() == 128 + SIGTERM
