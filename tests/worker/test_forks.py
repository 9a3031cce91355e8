"""Handlers that fork: the child is neither a second worker nor keeps the first one alive."""

import os
import subprocess
import sys
import time
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pgq
from tests.support import jobs
from tests.support.databases import PATIENCE, wait_until
from tests.support.jobs import Connection
from tests.support.workers import Workers, appears, drain

APP = ("--app", "tests.worker.handlers:app")


def test_a_child_that_leaves_its_handler_is_no_second_worker(
    shared: str, queue: Connection
) -> None:
    app = pgq.App()
    children: list[int] = []

    @app.job("fork")
    async def fork() -> None:
        child = os.fork()
        if child == 0:
            sys.exit(0)
        children.append(child)

    @app.job("fork a thread")
    def fork_a_thread() -> None:
        child = os.fork()
        if child:
            children.append(child)

    jobs.fill(queue, 3, "fork")
    jobs.fill(queue, 3, "fork a thread")
    drain(shared, app)

    assert jobs.counted(queue)["done"] == 6
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 6


def test_a_child_that_lives_on_does_not_keep_a_killed_workers_jobs(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, "fork and hold")
    first = fleet.start(*APP)
    wait_until(queue, "select status = 'running' from pgq.jobs where id = %s", job_id)
    second = fleet.start(*APP)
    second.seen("worker started")
    child = appears(tmp_path / "child-1")

    first.send(SIGKILL)
    again = appears(tmp_path / "child-2")
    (tmp_path / "go").touch()
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)

    for left in (child, again):
        os.kill(int(left.read_text()), SIGKILL)


def test_a_forked_child_can_be_ended_and_its_signals_are_none_to_the_worker(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    jobs.enqueue(queue, "fork and hold")
    worker = fleet.hire(*APP)
    child = int(appears(tmp_path / "child-1").read_text())
    os.kill(child, SIGTERM)
    late = time.monotonic() + PATIENCE
    while "\nState:\tZ" not in Path(f"/proc/{child}/status").read_text():
        assert time.monotonic() < late
        time.sleep(0.01)
    (tmp_path / "go").touch()
    wait_until(queue, "select bool_and(status = 'done') from pgq.jobs")
    other = jobs.enqueue(queue, "quick")
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", other)

    assert [line for line in worker.log() if line["event"].startswith("draining")] == []


EARLY = """
import os, signal, socket
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM))
from pgq.runner import fork  # what it does in a child comes after that
told, telling = socket.socketpair()
told.setblocking(False), telling.setblocking(False)
fork.own(telling.fileno())
signal.set_wakeup_fd(telling.fileno())
signal.signal(signal.SIGTERM, lambda *_: None)
child = os.fork()
if child == 0:
    os._exit(0)
print(os.waitpid(child, 0)[1])
try:
    print(told.recv(10))
except BlockingIOError:
    print("nothing")
"""


def test_a_signal_to_a_child_that_is_just_being_forked_ends_it_and_is_not_heard_elsewhere() -> None:
    done = subprocess.run(
        [sys.executable, "-c", EARLY], check=True, capture_output=True, text=True, timeout=PATIENCE
    )

    assert done.stdout.split() == [str(int(SIGTERM)), "nothing"]
