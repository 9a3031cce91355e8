"""What is legal but odd passes, and is counted; and it passes for its own cause alone."""

from dataclasses import replace

import pytest

from tests.chaos.history import History, Outage, Process, Rules, Stopped, Terminated, Told
from tests.chaos.invariants import judge
from tests.chaos.overlaps import Cause
from tests.chaos.planted import HELPER, Ending, told
from tests.chaos.recovery import Excuse, Excused
from tests.chaos.test_invariants import changed, killed_once, named
from tests.chaos.violations import Name

DONE, KILLED, CUT_OFF = Ending.DONE, Ending.KILLED, Ending.CUT_OFF
SESSION_ENDED = Ending.SESSION_ENDED
BESIDE = {Name.OVERLAP, Name.FALSE_DEATH}


def without(history: History, kind: type) -> History:
    """The history without the events of a kind."""
    events = tuple(event for event in history.events if not isinstance(event, kind))
    return replace(history, events=events)


@pytest.mark.parametrize(
    ("ending", "cause"), [(CUT_OFF, Cause.CUT_OFF), (SESSION_ENDED, Cause.SESSION_ENDED)]
)
def test_a_documented_overlap_is_counted_with_its_cause(ending: Ending, cause: Cause) -> None:
    verdict = judge(told([(ending, DONE)]))
    assert (verdict.violations, verdict.overlaps) == ((), {cause: 1})
    assert (verdict.longest_overlap, verdict.longest_awake) == (1.0, 0.2)


@pytest.mark.parametrize("ending", [CUT_OFF, SESSION_ENDED])
def test_no_overlap_is_excused_where_the_worker_did_not_stand_still(ending: Ending) -> None:
    assert named(without(told([(ending, DONE)]), Stopped)) == BESIDE


def test_a_short_stop_excuses_no_overlap() -> None:
    history = told([(CUT_OFF, DONE)])
    (stop,) = (event for event in history.events if isinstance(event, Stopped))
    short = replace(stop, until=stop.at + 6)
    others = without(history, Stopped).events
    assert named(replace(history, events=(*others, short))) == BESIDE


def test_nobody_is_dead_who_goes_on_again() -> None:
    history = told([(CUT_OFF, DONE)])
    workers = changed(history.workers, 0, died_at=115.6)
    late = replace(history, workers=workers, attempts=changed(history.attempts, 0, at=115.6))
    assert Name.FALSE_DEATH in named(late)


def test_a_stop_without_a_lost_session_must_outlast_the_visibility_timeout() -> None:
    assert named(without(told([(SESSION_ENDED, DONE)]), Terminated)) == BESIDE


def test_through_a_pooler_no_session_is_a_witness() -> None:
    history = told([(SESSION_ENDED, DONE)])
    assert named(replace(history, rules=Rules(pooled=True))) == BESIDE


def test_a_handler_must_end_when_its_worker_hears() -> None:
    history = told([(CUT_OFF, DONE)])
    processes = changed(history.processes, 0, ended=140.0)
    going_on = changed(history.executions, 0, end=130.0)
    assert named(replace(history, processes=processes, executions=going_on)) == {Name.LINGERED}


def test_each_time_a_worker_stood_still_counts_for_itself() -> None:
    history = told([(CUT_OFF, DONE)])
    earlier = Stopped(at=60.0, until=75.0, process="p2")
    processes = changed(history.processes, 0, began=50.0, ready=51.0)
    workers = changed(history.workers, 0, started_at=51.0)
    twice = replace(history, processes=processes, workers=workers)
    assert named(replace(twice, events=(earlier, *history.events))) == set()
    # The first time explains nothing of what began long after it.
    once = replace(twice, events=(earlier, *without(history, Stopped).events))
    assert named(once) == BESIDE
    later = Stopped(at=30.0, until=45.0, process="p2")
    ending = abandoned()
    processes = changed(ending.processes, 0, began=20.0, ready=21.0)
    workers = changed(ending.workers, 0, started_at=21.0)
    stood = replace(ending, processes=processes, workers=workers, events=(later, *ending.events))
    assert named(stood) == set()


def test_a_worker_that_is_not_heard_may_hand_its_jobs_back() -> None:
    history = told([(Ending.HANDED_BACK, DONE)])
    untold = replace(history, events=tuple(event for event in history.events if event.at != 101.0))
    assert named(untold) == {Name.RUN_TWICE, Name.ENDED}
    processes = changed(history.processes, 0, exit_code=1)
    events = (*untold.events, Outage(at=100.5, until=102.9))
    assert named(replace(untold, events=events, processes=processes)) == set()


def abandoned(*, second: float = 112.2, thread: bool = True) -> History:
    """A job that is handed back while it still runs, and runs again; its process ends at 114."""
    history = told([(Ending.HANDED_BACK, DONE)])
    executions = changed(history.executions, 0, end=None, how=None, thread=thread)
    executions = changed(executions, 1, start=second, end=second + 1)
    return replace(
        history,
        executions=executions,
        jobs=changed(history.jobs, 0, finished_at=second + 1.1),
        processes=changed(changed(history.processes, 0, ended=114.0), 1, ended=120.0),
    )


def test_a_thread_of_a_process_about_to_end_may_be_beside_the_next_execution() -> None:
    verdict = judge(abandoned())
    assert (verdict.violations, verdict.overlaps) == ((), {Cause.ENDING: 1})


def test_nothing_else_that_is_handed_back_may() -> None:
    assert named(abandoned(thread=False)) == {Name.OVERLAP}
    assert named(abandoned(second=105.0)) == {Name.OVERLAP}


def test_a_worker_that_stood_still_may_begin_a_job_that_has_ended_elsewhere() -> None:
    history = told([(CUT_OFF, DONE)])
    late = changed(history.executions, 0, start=115.05, end=115.06)
    assert named(replace(history, executions=late)) == set()
    assert named(without(replace(history, executions=late), Stopped)) == {
        Name.AFTER_END,
        Name.FALSE_DEATH,
    }


def test_a_commit_that_the_producer_did_not_hear_of_is_no_stray_job() -> None:
    assert named(replace(killed_once(), acknowledged=0)) == set()


def test_a_repeated_job_is_counted_with_its_cause() -> None:
    verdict = judge(told([(Ending.UNWRITTEN, DONE)]))
    assert (verdict.violations, verdict.repeats) == ((), {Cause.DIED: 1})


def test_a_job_comes_back_late_only_while_nobody_could_help() -> None:
    history = came_back_at(killed_once(), 112.0)
    assert named(history) == {Name.LATE}
    down = replace(history, events=(*history.events, Outage(at=101.5, until=104.0)))
    assert named(down) == set()
    assert set(judge(down).recovery.excused) == {Excuse.SERVER_DOWN}
    alone = replace(
        history, processes=tuple(found for found in history.processes if found.name != HELPER)
    )
    assert set(judge(alone).recovery.excused) == {Excuse.NO_HELPER}


def came_back_at(history: History, at: float) -> History:
    """The history of one kill with its job given back at this time."""
    return replace(
        history,
        attempts=changed(history.attempts, 0, at=at),
        workers=changed(history.workers, 0, died_at=at),
        executions=changed(history.executions, 1, start=at + 0.1, end=at + 0.2),
        jobs=changed(history.jobs, 0, finished_at=at + 0.3),
        processes=changed(history.processes, 1, began=99.0, ready=at, ended=130.0),
    )


def test_recovery_is_measured_where_the_promise_binds() -> None:
    recovery = judge(told([(KILLED, DONE), (KILLED, KILLED, DONE)])).recovery
    assert (recovery.judged, recovery.median, recovery.longest) == (2, 3.6, 3.6)
    assert dict(recovery.excused) == {Excuse.BACKOFF: Excused(1, 3.6)}
    never_again = judge(told([(KILLED,)], max_attempts=1))
    assert (never_again.violations, never_again.recovery.judged) == ((), 0)
    assert dict(never_again.recovery.excused) == {Excuse.USED_UP: Excused(1, 3.5)}


def test_a_kill_counts_though_the_worker_stood_still_long_before() -> None:
    history = killed_once()
    earlier = Stopped(at=60.0, until=75.0, process="p2")
    processes = changed(history.processes, 0, began=50.0, ready=51.0)
    workers = changed(history.workers, 0, started_at=51.0)
    stood = replace(
        history, processes=processes, workers=workers, events=(earlier, *history.events)
    )
    assert judge(stood).recovery.judged == 1


def test_a_worker_that_finds_no_server_as_it_starts_may_end() -> None:
    history = killed_once()
    failed = Process(name="p9", pid=9, began=150.0, ended=151.0, exit_code=3)
    history = replace(history, processes=(*history.processes, failed))
    assert named(history) == {Name.ENDED}
    events = (*history.events, Outage(at=149.0, until=152.0))
    assert named(replace(history, events=events)) == set()


def test_a_worker_that_was_told_to_end_may() -> None:
    history = killed_once()
    told_before = {event.process for event in history.events if isinstance(event, Told)}
    assert HELPER in told_before
    assert named(without(history, Told)) == {Name.ENDED}


def test_a_worker_that_was_told_to_end_before_it_listens_is_ended_by_the_signal() -> None:
    history = killed_once()
    early = Process(name="p9", pid=9, began=150.0, ended=150.2, exit_code=-15)
    told_early = Told(at=150.1, process="p9")
    history = replace(history, events=(*history.events, told_early))
    assert named(replace(history, processes=(*history.processes, early))) == set()
    ready = replace(early, ready=150.05)
    assert named(replace(history, processes=(*history.processes, ready))) == {Name.ENDED}
