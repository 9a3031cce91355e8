"""The checker itself: legal histories pass; what may never be is caught and named."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chaos.history import (
    Execution,
    History,
    How,
    Killed,
    Written,
)
from tests.chaos.invariants import judge
from tests.chaos.planted import HELPER, Ending, recounted, told
from tests.chaos.violations import Name

T = TypeVar("T")

DONE, FAILED, KILLED = Ending.DONE, Ending.FAILED, Ending.KILLED
NOT_LAST = [ending for ending in Ending if ending is not DONE]


def named(history: History) -> set[Name]:
    """Which invariants a history breaks."""
    return {violation.name for violation in judge(history).violations}


def changed(values: Sequence[T], place: int, **changes: Any) -> tuple[T, ...]:
    """The values with one of them changed."""
    one = replace(values[place], **changes)  # type: ignore[type-var]
    return tuple(one if number == place else value for number, value in enumerate(values))


@settings(deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(NOT_LAST), max_size=6), min_size=1, max_size=8),
    st.integers(2, 10),
)
def test_every_legal_history_passes(stories: list[list[Ending]], max_attempts: int) -> None:
    jobs = [used(endings, max_attempts) for endings in stories]
    verdict = judge(told(jobs, max_attempts=max_attempts))
    assert verdict.violations == ()
    unwritten = sum(endings.count(Ending.UNWRITTEN) for endings in jobs)
    assert sum(verdict.repeats.values()) == unwritten


@settings(deadline=None)
@given(st.lists(st.sampled_from(NOT_LAST), min_size=1, max_size=6), st.data())
def test_no_recorded_attempt_can_be_taken_out_of_a_history(
    endings: list[Ending], data: st.DataObject
) -> None:
    history = told([(*endings, DONE)])
    if history.attempts:
        place = data.draw(st.integers(0, len(history.attempts) - 1))
        kept = history.attempts[:place] + history.attempts[place + 1 :]
        assert Name.MISCOUNTED in named(recounted(replace(history, attempts=kept)))


def used(endings: list[Ending], max_attempts: int) -> tuple[Ending, ...]:
    """The endings up to the last attempt that is allowed; done if there is one left."""
    charged = 0
    for count, ending in enumerate(endings):
        charged += ending is not Ending.HANDED_BACK
        if charged == max_attempts:
            return tuple(endings[: count + 1])
    return (*endings, DONE)


def killed_once() -> History:
    """One job whose first worker is killed."""
    return told([(KILLED, DONE)])


def a_job_is_gone(history: History) -> History:
    return recounted(replace(history, jobs=(), attempts=(), written=(), executions=()))


def an_acknowledged_order_is_gone(history: History) -> History:
    return replace(history, acknowledged=history.acknowledged + 1)


def an_order_is_gone(history: History) -> History:
    return replace(history, orders=(), acknowledged=0)


def a_job_still_runs(history: History) -> History:
    jobs = changed(history.jobs, 0, status="running", lease=7, finished_at=None)
    # Its last execution has no end either.
    executions = changed(history.executions, 1, end=None, how=None)
    return recounted(replace(history, jobs=jobs, executions=executions))


def a_row_is_gone(history: History) -> History:
    return replace(history, written=())


def a_row_is_nobodys(history: History) -> History:
    stray = Written(job=1, attempt=9, process=HELPER)
    return replace(history, written=(*history.written, stray))


def nobody_was_done(history: History) -> History:
    executions = changed(history.executions, 1, how=How.FAILED)
    return replace(history, executions=executions)


def an_attempt_is_not_recorded(history: History) -> History:
    jobs = changed(history.jobs, 0, losses=0)
    return recounted(replace(history, attempts=(), jobs=jobs))


def an_attempt_is_recorded_twice(history: History) -> History:
    again = replace(history.attempts[0], outcome="failed")
    return recounted(replace(history, attempts=(*history.attempts, again)))


def too_many_attempts(history: History) -> History:
    return replace(history, jobs=changed(history.jobs, 0, max_attempts=1))


def a_loss_is_not_counted(history: History) -> History:
    return replace(history, jobs=changed(history.jobs, 0, losses=0))


def a_counter_is_off(history: History) -> History:
    return replace(history, counters=replace(history.counters, done=2))


def an_attempt_runs_twice(history: History) -> History:
    # The helper was not told to end before, so it cannot have handed the job back.
    first = Execution(job=1, attempt=2, process=HELPER, start=104.61, end=104.62, how=How.STOPPED)
    executions = changed(history.executions, 1, start=104.7)
    return replace(history, executions=(*executions, first))


def two_at_once(history: History) -> History:
    executions = changed(history.executions, 0, end=106.0, how=How.STOPPED)
    return replace(history, executions=executions)


def done_twice(history: History) -> History:
    """The process of the first lived on for a minute after it was done."""
    executions = changed(history.executions, 0, start=30.0, end=31.0, how=How.DONE)
    row = Written(job=1, attempt=1, process="p2")
    processes = changed(history.processes, 0, began=20.0, ready=21.0)
    workers = changed(history.workers, 0, started_at=21.0)
    return replace(
        history,
        executions=executions,
        written=(*history.written, row),
        processes=processes,
        workers=workers,
    )


def it_ran_after_its_end(history: History) -> History:
    jobs = changed(history.jobs, 0, finished_at=104.65)
    executions = changed(history.executions, 1, start=104.75)
    return replace(history, jobs=jobs, executions=executions)


def the_living_was_declared_dead(history: History) -> History:
    events = tuple(event for event in history.events if not isinstance(event, Killed))
    processes = changed(history.processes, 0, ended=110.0, exit_code=1)
    executions = changed(history.executions, 0, end=101.0, how=How.STOPPED)
    return replace(history, events=events, processes=processes, executions=executions)


def a_job_was_taken_from_the_living(history: History) -> History:
    workers = changed(history.workers, 0, died_at=120.0)
    return replace(history, workers=workers)


def a_worker_ended(history: History) -> History:
    events = tuple(event for event in history.events if event.process != HELPER)  # type: ignore[union-attr]
    return replace(history, events=events)


def a_worker_crashed_as_it_was_told_to_end(history: History) -> History:
    processes = changed(history.processes, -1 + len(history.processes), exit_code=-11)
    return replace(history, processes=processes)


def it_came_back_late(history: History) -> History:
    later = 3.0
    attempts = changed(history.attempts, 0, at=history.attempts[0].at + later)
    executions = changed(history.executions, 1, start=107.7, end=108.7)
    jobs = changed(history.jobs, 0, finished_at=108.8)
    workers = changed(history.workers, 0, died_at=attempts[0].at)
    processes = changed(history.processes, 1, ended=120.0)
    return replace(
        history,
        attempts=attempts,
        executions=executions,
        jobs=jobs,
        workers=workers,
        processes=processes,
    )


def it_was_given_back_and_did_not_run(history: History) -> History:
    executions = changed(history.executions, 1, start=108.0, end=109.0)
    jobs = changed(history.jobs, 0, finished_at=109.1)
    processes = changed(history.processes, 1, ended=120.0)
    return replace(history, executions=executions, jobs=jobs, processes=processes)


PLANTED: list[tuple[Name, Callable[[History], History]]] = [
    (Name.LOST, a_job_is_gone),
    (Name.LOST, an_acknowledged_order_is_gone),
    (Name.UNORDERED, an_order_is_gone),
    (Name.UNFINISHED, a_job_still_runs),
    (Name.NOT_WRITTEN, a_row_is_gone),
    (Name.UNEXECUTED_ROW, a_row_is_nobodys),
    (Name.NOT_EXECUTED, nobody_was_done),
    (Name.MISCOUNTED, an_attempt_is_not_recorded),
    (Name.CHARGED_TWICE, an_attempt_is_recorded_twice),
    (Name.TOO_MANY, too_many_attempts),
    (Name.MISCOUNTED_LOSSES, a_loss_is_not_counted),
    (Name.COUNTERS, a_counter_is_off),
    (Name.RUN_TWICE, an_attempt_runs_twice),
    (Name.OVERLAP, two_at_once),
    (Name.DONE_TWICE, done_twice),
    (Name.AFTER_END, it_ran_after_its_end),
    (Name.FALSE_DEATH, the_living_was_declared_dead),
    (Name.FALSE_DEATH, a_job_was_taken_from_the_living),
    (Name.ENDED, a_worker_ended),
    (Name.ENDED, a_worker_crashed_as_it_was_told_to_end),
    (Name.LATE, it_came_back_late),
    (Name.LATE, it_was_given_back_and_did_not_run),
]


@pytest.mark.parametrize(("name", "plant"), PLANTED, ids=[plant.__name__ for _, plant in PLANTED])
def test_a_planted_violation_is_caught_and_named(
    name: Name, plant: Callable[[History], History]
) -> None:
    history = killed_once()
    assert named(history) == set()
    assert named(plant(history)) == {name}


@pytest.mark.parametrize("reason", [None, "", "another one"])
def test_a_job_that_failed_without_its_reason_is_caught(reason: str | None) -> None:
    history = told([(FAILED, FAILED)], max_attempts=2)
    assert named(history) == set()
    jobs = changed(history.jobs, 0, last_error=reason)
    assert named(replace(history, jobs=jobs)) == {Name.NO_REASON}


def test_every_invariant_has_a_history_that_breaks_it() -> None:
    elsewhere = {Name.NO_REASON, Name.LINGERED}
    assert {name for name, _ in PLANTED} | elsewhere == set(Name)
