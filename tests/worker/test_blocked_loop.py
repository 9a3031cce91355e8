"""While an async handler blocks the event loop, what need not wait for it is still made to end."""

from datetime import timedelta
from pathlib import Path

from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.workers import Workers, appears

APART = ("--app", "tests.worker.apart:app")


def test_a_process_is_killed_and_its_end_is_written_later(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, "clean up")
    fleet.start(*APART)
    appears(tmp_path / "started-1")
    jobs.enqueue(queue, "block the loop")
    appears(tmp_path / "blocking")

    assert jobs.kill(queue, job_id) == ["requested"]

    appears(tmp_path / "cleaned")
    assert jobs.row(queue, job_id)["status"] == "running"
    (tmp_path / "go").touch()
    wait_until(queue, "select status = 'cancelled' from pgq.jobs where id = %s", job_id)
    assert jobs.row(queue, job_id)["last_error"] == "killed by an operator (ended by SIGTERM)"


def test_the_timeout_of_a_process_is_kept(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    fleet.hire(*APART)
    job_id = jobs.enqueue(queue, "clean up", timeout=timedelta(seconds=3), max_attempts=1)
    appears(tmp_path / "started-1")
    jobs.enqueue(queue, "block the loop")
    appears(tmp_path / "blocking")

    appears(tmp_path / "cleaned")
    assert jobs.row(queue, job_id)["status"] == "running"
    (tmp_path / "go").touch()
    wait_until(queue, "select status = 'failed' from pgq.jobs where id = %s", job_id)
    assert jobs.row(queue, job_id)["last_error"] == "timed out after 3s (ended by SIGTERM)"


def test_a_thread_sees_its_flag(queue: Connection, fleet: Workers, tmp_path: Path) -> None:
    fleet.hire("--app", "tests.worker.handlers:app")
    job_id = jobs.enqueue(queue, "never ends")
    wait_until(queue, "select status = 'running' from pgq.jobs where id = %s", job_id)
    blocking = jobs.enqueue(queue, "block the loop", payload={"seconds": 60})
    wait_until(queue, "select status = 'running' from pgq.jobs where id = %s", blocking)

    jobs.cancel(queue, job_id)

    appears(tmp_path / f"asked-{job_id}")
