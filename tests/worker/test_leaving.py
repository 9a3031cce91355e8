"""A worker that has stopped is gone, whatever its handlers left behind."""

from pathlib import Path
from signal import SIGINT, SIGTERM

import pytest

from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.workers import Workers, appears

APP = ("--app", "tests.worker.handlers:app", "-c", "1")


@pytest.mark.parametrize("kind", ["swallow", "leave a thread"])
def test_what_cannot_be_stopped_ends_with_the_process(
    queue: Connection, fleet: Workers, tmp_path: Path, kind: str
) -> None:
    job_id = jobs.enqueue(queue, kind)
    worker = fleet.start(*APP)
    appears(tmp_path / "started-1")

    worker.send(SIGTERM)
    worker.seen("draining")
    worker.send(SIGINT)

    assert worker.ended() == 128 + SIGINT
    worker.seen("the process ends, so that what handlers left behind does")
    row = jobs.row(queue, job_id)
    assert (row["status"], row["attempts"]) == ("pending", 0)


def test_a_task_that_a_job_left_behind_keeps_no_worker(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, "leave a task")
    worker = fleet.start(*APP)
    appears(tmp_path / "started-1")
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)

    worker.send(SIGTERM)

    assert worker.ended() == 0
