"""What terminals and init systems send, and to whom: first signals reach no command of a worker."""

import contextlib
import os
import socket
from pathlib import Path
from signal import SIG_IGN, SIGHUP, SIGINT, SIGKILL, SIGTERM, Signals, signal

import pytest

from tests.support import jobs, workers
from tests.support.databases import PATIENCE, wait_until
from tests.support.jobs import Connection
from tests.support.lifelines import lifeline
from tests.support.processes import descendants
from tests.support.workers import Workers, appears

APP = ("--app", "tests.worker.handlers:app", "-c", "1")
COMMAND = """
touch "$DESK/started-$PGQ_ATTEMPT"
while [ ! -e "$DESK/go" ]; do sleep 0.02; done
"""


@pytest.mark.parametrize("number", [SIGTERM, SIGINT, SIGHUP])
def test_a_signal_to_the_whole_group_lets_commands_finish(
    queue: Connection, fleet: Workers, tmp_path: Path, number: Signals
) -> None:
    job_id = jobs.enqueue(queue, max_attempts=1)
    worker = fleet.start("--exec", COMMAND)
    appears(tmp_path / "started-1")

    worker.send_group(number)
    worker.seen("draining", signal=number.name)
    (tmp_path / "go").touch()

    assert worker.ended() == 0
    row = jobs.row(queue, job_id)
    assert (row["status"], row["attempts"]) == ("done", 1)


def test_a_second_signal_to_the_whole_group_hands_commands_back(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, max_attempts=1)
    worker = fleet.start("--exec", COMMAND)
    appears(tmp_path / "started-1")

    worker.send_group(SIGTERM)
    worker.seen("draining")
    worker.send_group(SIGTERM)

    assert worker.ended() == 128 + SIGTERM
    row = jobs.row(queue, job_id)
    assert (row["status"], row["attempts"], row["losses"]) == ("pending", 0, 0)


def test_what_an_init_system_does_when_a_drain_takes_too_long_costs_one_attempt(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    """SIGTERM to the worker, and after a while SIGKILL to everything: KillMode=mixed."""
    job_id = jobs.enqueue(queue)
    with lifeline(tmp_path / "line") as line:
        worker = fleet.start("--exec", f'exec 9>"$DESK/line"; echo up >&9; {COMMAND}')
        assert line.heard() == "up\n"
        worker.send(SIGTERM)
        worker.seen("draining")
        for pid in (worker.pid, *descendants(worker.pid)):
            with contextlib.suppress(ProcessLookupError):  # it lived for a moment
                os.kill(pid, SIGKILL)
        assert worker.ended() == -SIGKILL
        assert line.heard() == ""

    (tmp_path / "go").touch()
    fleet.start("--exec", COMMAND)
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)
    row = jobs.row(queue, job_id)
    assert (row["attempts"], row["losses"]) == (2, 1)


def test_an_init_system_is_told_when_the_worker_is_ready_and_when_it_drains(
    queue: Connection, shared: str, tmp_path: Path
) -> None:
    address = str(tmp_path / "notify")
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard,
        workers.starting(shared, {"NOTIFY_SOCKET": address}) as fleet,
    ):
        heard.bind(address)
        heard.settimeout(PATIENCE)
        worker = fleet.start("--exec", "true")
        assert heard.recv(100) == b"READY=1"
        assert jobs.value(queue, "select count(*) from pgq.workers") == 1

        worker.send(SIGTERM)
        assert heard.recv(100) == b"STOPPING=1"
        assert worker.ended() == 0


def test_a_hangup_that_comes_twice_is_one_signal(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    """As from a terminal that closes, and from the shell in it."""
    job_id = jobs.enqueue(queue, "hold")
    worker = fleet.start(*APP)
    appears(tmp_path / "started-1")

    worker.send(SIGHUP)
    worker.seen("draining", signal="SIGHUP")
    worker.send(SIGHUP)
    (tmp_path / "go").touch()

    assert worker.ended() == 0
    assert jobs.row(queue, job_id)["status"] == "done"


def test_a_hangup_that_was_ignored_from_the_start_stays_ignored(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    """As under nohup."""
    job_id = jobs.enqueue(queue, "hold")
    before = signal(SIGHUP, SIG_IGN)
    try:
        worker = fleet.start(*APP)
    finally:
        signal(SIGHUP, before)
    appears(tmp_path / "started-1")

    worker.send(SIGHUP)
    worker.send(SIGTERM)
    assert worker.seen("draining")["signal"] == "SIGTERM"
    (tmp_path / "go").touch()

    assert worker.ended() == 0
    assert jobs.row(queue, job_id)["status"] == "done"
