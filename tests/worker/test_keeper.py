"""The guard of processes: whatever becomes of it, it holds up and fails nothing that it guards."""

import os
import resource
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL, SIGSTOP

import pytest

from pgq.model import Done
from pgq.runner.command import command_perform
from pgq.runner.interrupt import Stop
from pgq.runner.keeper import Keeper
from tests.support import stage
from tests.support.databases import PATIENCE
from tests.support.lifelines import lifeline
from tests.support.processes import guard_of
from tests.support.workers import appears

NOBODY = 2**22 + 1
"""No process has such a number."""

HOLD = 'exec 9>"$0"; echo up >&9; sleep 300'


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    keeper = Keeper()
    yield keeper
    keeper.close()


def guard() -> int:
    """The guard that this process has."""
    pid = guard_of(os.getpid())
    assert pid is not None
    return pid


def end_guard() -> None:
    """Kill it, and see it dead; it is for the keeper to bury."""
    pid = guard()
    os.kill(pid, SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


@contextmanager
def held(line: Path) -> Iterator[int]:
    """A process group that holds a lifeline."""
    process = subprocess.Popen(["sh", "-c", HOLD, str(line)], start_new_session=True)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """This process can start nothing meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_guard_that_cannot_be_replaced_now_is_replaced_later(
    keeper: Keeper, tmp_path: Path
) -> None:
    with lifeline(tmp_path / "line") as line, held(tmp_path / "line") as group:
        assert line.heard() == "up\n"
        keeper.watch(group)
        keeper.watch(NOBODY)
        end_guard()

        with no_descriptor_left():
            keeper.forget(NOBODY)
            keeper.check()
            with pytest.raises(OSError, match="Too many open files"):
                keeper.watch(NOBODY)
        keeper.check()
        assert guard_of(os.getpid()) is not None
        keeper.close()

        assert line.heard() == ""


def test_a_command_that_has_succeeded_is_done_though_its_guard_is_gone(
    keeper: Keeper, tmp_path: Path
) -> None:
    command = f"touch {tmp_path}/up; while ! test -e {tmp_path}/go; do sleep 0.01; done"
    perform = command_perform(command, keeper, stage.Stage().backing())
    with ThreadPoolExecutor(1) as thread:
        verdict = thread.submit(perform, stage.job(), Stop())
        appears(tmp_path / "up")
        end_guard()

        with no_descriptor_left():
            (tmp_path / "up").rename(tmp_path / "go")

            assert verdict.result(PATIENCE) == Done()


def test_a_guard_that_stands_still_holds_nobody_up(keeper: Keeper, tmp_path: Path) -> None:
    with lifeline(tmp_path / "line") as line, held(tmp_path / "line") as group:
        assert line.heard() == "up\n"
        keeper.watch(group)
        first = guard()
        os.kill(first, SIGSTOP)

        def tell_much() -> None:
            for _ in range(20_000):
                keeper.watch(group)

        thread = ThreadPoolExecutor(1)
        try:
            thread.submit(tell_much).result(PATIENCE)
        finally:
            if guard_of(os.getpid()) == first:  # so that a failure ends too
                os.kill(first, SIGKILL)
            thread.shutdown()
        keeper.close()

        assert line.heard() == ""
