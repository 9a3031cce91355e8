"""The group of a process: nobody else can get its number while it may still be signalled."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from signal import SIG_IGN, SIGCHLD, signal

import pytest

from pgq.model import Failed
from pgq.runner.command import command_perform
from pgq.runner.group import Group
from pgq.runner.interrupt import Stop
from pgq.runner.keeper import Keeper
from tests.support import stage
from tests.support.databases import PATIENCE
from tests.support.lifelines import lifeline

LEAVE_ONE = 'exec 9>"$0"; echo up >&9; sleep 300 & exit 3'


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends at once, and leaves another one in its group that holds `line`."""
    with lifeline(tmp_path / "line") as line:
        command = ["sh", "-c", LEAVE_ONE, str(tmp_path / "line")]
        process = subprocess.Popen(command, start_new_session=True)
        assert line.heard() == "up\n"
        yield process
        assert line.heard() == ""


def test_a_leader_that_ended_keeps_its_number_until_all_that_it_left_is_killed(
    leader: subprocess.Popen[bytes],
) -> None:
    group = Group(leader)

    assert group.wait(PATIENCE)
    assert group.ended
    assert Path("/proc", str(leader.pid)).exists()

    assert group.bury(PATIENCE)
    assert leader.returncode == 3
    assert group.end() == []


def test_a_group_is_ended_though_its_leader_ended_before(leader: subprocess.Popen[bytes]) -> None:
    group = Group(leader)
    assert group.wait(PATIENCE)

    assert group.end() == []

    assert Path("/proc", str(leader.pid)).exists()
    assert group.bury(0)


def test_a_command_whose_ending_is_lost_is_not_taken_for_done() -> None:
    keeper = Keeper()
    perform = command_perform("exit 3", keeper, stage.Stage().backing())
    before = signal(SIGCHLD, SIG_IGN)  # as some programs leave it to those that they start
    try:
        verdict = perform(stage.job(), Stop())
    finally:
        signal(SIGCHLD, before)
        keeper.close()

    assert isinstance(verdict, Failed)
    assert verdict.error.startswith("the command ended, and how is not known")


def test_a_leader_that_has_not_ended_is_not_buried() -> None:
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as leader:
        group = Group(leader)

        assert not group.bury(0)

        group.kill()
        assert group.bury(PATIENCE)
        assert leader.returncode == -9
