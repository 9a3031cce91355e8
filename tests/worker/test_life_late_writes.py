"""A worker that was frozen for too long wakes up: whatever it writes then changes nothing."""

from datetime import timedelta
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest

from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.workers import Workers, appears

APP = ("--app", "tests.worker.rough:app")


@pytest.mark.parametrize("how", ["done", "failed", "snoozed", "cancelled", "retried"])
def test_an_outcome_that_comes_too_late_changes_nothing(
    queue: Connection, elder: Connection, fleet: Workers, tmp_path: Path, how: str
) -> None:
    job_id = jobs.enqueue(queue, "end so", payload={"how": how}, max_attempts=5)
    frozen = fleet.start(*APP)
    appears(tmp_path / "started-1")
    wait_until(queue, "select progress is not null from pgq.jobs")
    frozen.send(SIGSTOP)
    jobs.fall_silent(queue, frozen.id, timedelta(minutes=2))
    assert jobs.reap(elder) == {job_id: "pending"}
    # Another one did the job meanwhile, and says other things.
    mine = jobs.register(queue)
    jobs.finish(queue, mine, jobs.claim_one(queue, mine))
    before = jobs.row(queue, job_id)
    attempts = jobs.attempts(queue, job_id)
    (tmp_path / "go").touch()

    frozen.send(SIGCONT)

    frozen.seen("declared dead")
    frozen.seen("worker stopped")
    assert jobs.row(queue, job_id) == before
    assert jobs.attempts(queue, job_id) == attempts
    assert [line["job"] for line in frozen.log("lease lost")] == [job_id]


def test_progress_that_comes_too_late_changes_nothing(
    queue: Connection, elder: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, "end so", payload={"how": "done"})
    frozen = fleet.start(*APP, "-c", "1")
    appears(tmp_path / "started-1")
    wait_until(queue, "select progress is not null from pgq.jobs")
    frozen.send(SIGSTOP)
    jobs.fall_silent(queue, frozen.id, timedelta(minutes=2))
    assert jobs.reap(elder) == {job_id: "pending"}
    mine = jobs.register(queue)
    jobs.claim_one(queue, mine)
    queue.execute("update pgq.jobs set progress = '{\"fraction\": 0.9}'")
    before = jobs.row(queue, job_id)

    frozen.send(SIGCONT)

    frozen.seen("worker stopped")
    assert jobs.row(queue, job_id) == before
