"""Which rungs of a ladder are due when."""

from collections.abc import Sequence

from pgq.registry.app import Isolation
from pgq.runner.interrupt import Interrupt, Stop
from pgq.runner.ladder import HURRY, LADDERS, Rung
from pgq.runner.running import Climb, Ladder

THREAD = LADDERS[Isolation.THREAD]
ASYNC = LADDERS[Isolation.ASYNC]


def climbed(
    cause: Interrupt, ladder: Ladder, times: Sequence[float]
) -> list[tuple[list[Rung], bool]]:
    """What happens at these times to a job that was asked to stop at 100."""
    stop = Stop()
    stop.ask(cause, 100.0)
    climb = Climb(stop)
    return [(list(climb.due(ladder, at)), climb.in_vain(ladder, at)) for at in times]


def test_each_rung_is_taken_once_when_it_is_due() -> None:
    for cause in (Interrupt.HAND_BACK, Interrupt.TIMEOUT, Interrupt.KILL):
        assert climbed(cause, ASYNC, [100, 104.9, 105, 105.1, 110, 111]) == [
            ([Rung.TASK], False),
            ([], False),
            ([Rung.QUERIES, Rung.TASK], False),
            ([], False),
            ([], True),
            ([], False),
        ]


def test_a_mere_request_takes_the_first_rung_only_and_nobody_complains() -> None:
    assert climbed(Interrupt.CANCEL, THREAD, [100, 105, 1e9]) == [
        ([Rung.FLAG], False), ([], False), ([], False)
    ]  # fmt: skip


def test_a_job_that_others_run_is_hurried() -> None:
    assert climbed(
        Interrupt.LOST, THREAD, [100 + seconds * HURRY for seconds in (0, 4.9, 5.1, 9.9, 10.1)]
    ) == [
        ([Rung.FLAG], False), ([], False), ([Rung.QUERIES], False), ([], False), ([], True)
    ]  # fmt: skip


def test_a_look_that_comes_late_takes_all_that_is_due() -> None:
    assert climbed(Interrupt.KILL, THREAD, [200]) == [([Rung.FLAG, Rung.QUERIES], True)]


def test_a_runner_without_rungs_takes_none() -> None:
    assert climbed(Interrupt.KILL, (), [100, 1e9]) == [([], False), ([], False)]
