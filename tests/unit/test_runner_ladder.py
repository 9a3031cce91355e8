"""Which rungs are due for a job in a process or a command, and when."""

import pytest

from pgq.registry.app import Isolation
from pgq.runner.interrupt import Interrupt, Stop
from pgq.runner.ladder import HURRY, LADDERS, LONGEST, Rung
from pgq.runner.running import Climb
from pgq.worker import closing, surrender

T = 1000.0
"""When the first wish is told."""


class Rungs:
    """The rungs that are due for a job that runs in this way."""

    def __init__(self, isolation: Isolation, stop: Stop) -> None:
        self._climb = Climb(stop)
        self._ladder = LADDERS[isolation]

    def due(self, now: float) -> list[Rung]:
        return list(self._climb.due(self._ladder, now))


@pytest.fixture
def stop() -> Stop:
    return Stop()


def test_nothing_is_due_before_anybody_asked(stop: Stop) -> None:
    assert Rungs(Isolation.PROCESS, stop).due(T) == []


@pytest.mark.parametrize("cause", [Interrupt.TIMEOUT, Interrupt.KILL, Interrupt.HAND_BACK])
def test_a_process_is_told_then_ended_each_rung_once(stop: Stop, cause: Interrupt) -> None:
    rungs = Rungs(Isolation.PROCESS, stop)
    stop.ask(cause, T)

    taken = [rungs.due(T + after) for after in (0, 1.9, 2, 6.9, 7, 100)]

    assert taken == [[Rung.FLAG], [], [Rung.TERM], [], [Rung.KILL, Rung.QUERIES], []]


def test_a_command_gets_sigterm_at_once(stop: Stop) -> None:
    rungs = Rungs(Isolation.COMMAND, stop)
    stop.ask(Interrupt.TIMEOUT, T)

    assert [rungs.due(T), rungs.due(T + 5)] == [[Rung.TERM], [Rung.KILL, Rung.QUERIES]]


@pytest.mark.parametrize(
    ("isolation", "first"), [(Isolation.PROCESS, Rung.FLAG), (Isolation.COMMAND, Rung.TERM)]
)
def test_one_that_is_asked_to_cancel_is_only_asked(
    stop: Stop, isolation: Isolation, first: Rung
) -> None:
    rungs = Rungs(isolation, stop)
    stop.ask(Interrupt.CANCEL, T)

    assert rungs.due(T + 1000) == [first]
    assert rungs.due(T + 2000) == []


def test_a_stronger_wish_begins_the_ladder_again(stop: Stop) -> None:
    rungs = Rungs(Isolation.PROCESS, stop)
    stop.ask(Interrupt.CANCEL, T)
    assert rungs.due(T) == [Rung.FLAG]

    stop.ask(Interrupt.KILL, T + 100)

    assert rungs.due(T + 100) == [Rung.FLAG]
    assert rungs.due(T + 102) == [Rung.TERM]


def test_what_others_run_is_ended_before_the_worker_would_end_itself(stop: Stop) -> None:
    rungs = Rungs(Isolation.PROCESS, stop)
    stop.ask(Interrupt.LOST, T)

    assert rungs.due(T + surrender.LET_GO / 2)[-2:] == [Rung.KILL, Rung.QUERIES]
    assert surrender.LET_GO > 2 * HURRY * LONGEST - 1e-9


def test_a_worker_that_stops_waits_for_the_whole_ladder() -> None:
    assert closing.STOPPING > LONGEST
