"""A command is made to end rung by rung, and what it started ends with it."""

import os
import time
from datetime import timedelta
from pathlib import Path
from signal import SIGINT, SIGKILL

import pytest

from tests.support import jobs
from tests.support.databases import PATIENCE, wait_until
from tests.support.jobs import Connection
from tests.support.lifelines import lifeline
from tests.support.processes import guard_of
from tests.support.workers import Workers, appears, drain

SHORT = timedelta(milliseconds=300)


def test_what_ignores_sigterm_is_killed_with_all_that_it_started(
    shared: str, queue: Connection, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, timeout=SHORT)
    with lifeline(tmp_path / "line") as line:
        drain(
            shared,
            command=f"exec 9>{tmp_path}/line; trap '' TERM; echo up >&9; (sleep 300 &); sleep 300",
        )
        assert line.heard() == "up\n"
        assert line.heard() == ""

    row = jobs.row(queue, job_id)
    assert (row["status"], row["attempts"]) == ("pending", 1)
    assert row["last_error"] == "timed out after 0.3s (ended by SIGKILL)"


@pytest.mark.parametrize("leave", ["setsid sleep 300 &", "(setsid sleep 300 &) &"])
def test_what_left_the_process_group_ends_with_a_job_that_is_made_to_end(
    shared: str, queue: Connection, tmp_path: Path, leave: str
) -> None:
    job_id = jobs.enqueue(queue, timeout=SHORT)
    with lifeline(tmp_path / "line") as line:
        drain(shared, command=f"exec 9>{tmp_path}/line; echo up >&9; {leave} sleep 300")
        assert line.heard() == "up\n"
        assert line.heard() == ""

    assert jobs.row(queue, job_id)["last_error"] == "timed out after 0.3s (ended by SIGTERM)"


def test_a_daemon_that_a_command_starts_on_purpose_lives_on(
    shared: str, queue: Connection, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue)
    go, gone = tmp_path / "go", tmp_path / "gone"
    script = f"while ! test -e {go}; do sleep 0.01; done; touch {gone}"
    drain(shared, command=f"setsid sh -c '{script}' >/dev/null 2>&1 & sleep 0.2")

    assert jobs.row(queue, job_id)["status"] == "done"
    go.touch()
    appears(gone)


def test_a_command_that_is_asked_to_cancel_gets_sigterm_and_may_refuse(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue)
    fleet.start(
        "--exec",
        'trap \'touch "$DESK/asked"\' TERM; touch "$DESK/up"; '
        'while ! test -e "$DESK/go"; do sleep 0.01; done',
    )
    appears(tmp_path / "up")
    jobs.cancel(queue, job_id)
    appears(tmp_path / "asked")
    queue.execute("select pg_catalog.pg_sleep(6)")  # longer than a timeout would wait to kill
    assert jobs.row(queue, job_id)["status"] == "running"

    (tmp_path / "go").touch()

    wait_until(queue, "select status <> 'running' from pgq.jobs where id = %s", job_id)
    row = jobs.row(queue, job_id)
    assert (row["status"], row["last_error"]) == ("cancelled", "cancelled while it ran")


def test_a_command_that_is_killed_says_by_what(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue)
    fleet.start("--exec", "trap '' TERM; touch \"$DESK/up\"; while :; do sleep 0.1; done")
    appears(tmp_path / "up")

    queue.execute(
        "update pgq.jobs set cancel_requested_at = now(), kill_requested_at = now() where id = %s",
        [job_id],
    )

    wait_until(queue, "select status <> 'running' from pgq.jobs where id = %s", job_id)
    row = jobs.row(queue, job_id)
    assert (row["status"], row["last_error"]) == (
        "cancelled",
        "killed by an operator (ended by SIGKILL)",
    )


def test_a_command_that_outlives_a_hand_back_is_gone_before_it_runs_again(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue)
    with lifeline(tmp_path / "line") as line:
        worker = fleet.start(
            "--exec", "exec 9>\"$DESK/line\"; trap '' TERM; echo up >&9; sleep 300; sleep 300"
        )
        assert line.heard() == "up\n"
        worker.send(SIGINT)
        worker.seen("draining")
        worker.send(SIGINT)

        assert worker.ended() == 128 + SIGINT
        assert line.heard() == ""

    row = jobs.row(queue, job_id)
    assert (row["status"], row["attempts"]) == ("pending", 0)


def test_a_guard_that_somebody_ended_is_replaced(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    jobs.enqueue(queue)
    with lifeline(tmp_path / "line") as line:
        worker = fleet.start("--exec", 'exec 9>"$DESK/line"; echo up >&9; (sleep 300 &); sleep 300')
        assert line.heard() == "up\n"
        first = guard_of(worker.pid)
        assert first is not None

        os.kill(first, SIGKILL)
        until = time.monotonic() + PATIENCE
        while guard_of(worker.pid) in (None, first):
            assert time.monotonic() < until, "it was not replaced"
            time.sleep(0.01)
        worker.send(SIGKILL)

        assert line.heard() == ""
