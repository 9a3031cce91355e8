"""A worker in a terminal of its own: Ctrl-C, and a window that is closed over it."""

import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import jobs
from tests.support.databases import PATIENCE, wait_until
from tests.support.jobs import Connection
from tests.support.processes import descendants, processor_time
from tests.support.terminal import Terminal, terminal
from tests.support.workers import PROGRAM, ROOT, appears

APP = ("--app", "tests.worker.handlers:app")
COMMAND = """
touch "$DESK/started-$PGQ_ATTEMPT"
while [ ! -e "$DESK/go" ]; do sleep 0.02; done
"""
WORK = {"app": ("hold", APP), "command": ("work", ("--exec", COMMAND))}
"""The kind of a job that waits for a file `go`, and what serves it."""


@pytest.fixture
def window() -> Iterator[Terminal]:
    """A terminal with a shell in it."""
    with terminal(cwd=ROOT) as opened:
        yield opened


def work_in(window: Terminal, shared: str, desk: Path, *options: str) -> int:
    """Start a worker in the terminal, and wait until it runs its first job; gives its pid."""
    program = (PROGRAM, "--dsn", shared, "worker", *options)
    path = f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}"
    window.type(shlex.join(["env", path, f"DESK={desk}", *program]))
    appears(desk / "started-1")
    (worker, *_) = descendants(window.pid)
    return worker


def is_gone(pid: int) -> bool:
    """Whether a process ends within the time that anything may take here."""
    deadline = time.monotonic() + PATIENCE
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("work", WORK)
def test_ctrl_c_drains(
    window: Terminal, queue: Connection, shared: str, tmp_path: Path, work: str
) -> None:
    kind, options = WORK[work]
    job_id = jobs.enqueue(queue, kind, max_attempts=1)
    worker = work_in(window, shared, tmp_path, *options)

    window.press("C-c")
    window.shows("draining: the next signal hands running jobs back signal=SIGINT")
    (tmp_path / "go").touch()

    window.shows("worker stopped")
    assert is_gone(worker)
    window.type("echo code $?")
    window.shows("code 0")
    row = jobs.row(queue, job_id)
    assert (row["status"], row["attempts"]) == ("done", 1)


@pytest.mark.parametrize("work", WORK)
def test_a_worker_whose_window_is_closed_finishes_its_jobs_and_ends(
    window: Terminal, queue: Connection, shared: str, tmp_path: Path, work: str
) -> None:
    kind, options = WORK[work]
    job_id = jobs.enqueue(queue, kind, max_attempts=1)
    left = jobs.enqueue(queue, kind)
    worker = work_in(window, shared, tmp_path, "-c", "1", *options)

    window.close()
    wait_until(queue, "select draining_at is not null from pgq.workers")
    used = processor_time(worker)
    # Its log has nowhere to go; it works on all the same, and does not spin.
    beat = jobs.value(queue, "select beat_at from pgq.workers")
    wait_until(queue, "select beat_at > %s + interval '2 s' from pgq.workers", beat)
    assert processor_time(worker) - used < 1
    (tmp_path / "go").touch()

    assert is_gone(worker)
    row = jobs.row(queue, job_id)
    assert (row["status"], row["attempts"]) == ("done", 1)
    assert jobs.row(queue, left)["attempts"] == 0
    assert jobs.value(queue, "select stopped_at is not null from pgq.workers")
