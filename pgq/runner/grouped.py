"""The Runner of jobs that run in processes of their own: a thread attends each, and can end it."""

from collections.abc import Callable
from dataclasses import replace
from signal import SIGKILL, SIGTERM
from typing import assert_never

from pgq.model import Cancelled, ClaimedJob, Failed, Verdict
from pgq.runner import Backing, Report
from pgq.runner.group import Group, Process
from pgq.runner.interrupt import Interrupt, Stop, clock, deadline
from pgq.runner.keeper import Keeper
from pgq.runner.ladder import Rung
from pgq.runner.output import Tail
from pgq.runner.records import current
from pgq.runner.running import Climb, Ladder
from pgq.runner.thread import Perform, ThreadRunner

DIE_WITHIN = 5.0
"""Seconds in which what got SIGKILL is expected to end."""


class GroupRunner(ThreadRunner):
    """A ThreadRunner whose jobs can be ended; each attends its own ladder."""

    def __init__(
        self,
        perform: Perform,
        capacity: int,
        report: Report,
        *,
        backing: Backing,
        keeper: Keeper,
        sweep: Callable[[], None] | None = None,
    ) -> None:
        """`sweep`: what else is to be done now and then; must not wait."""
        super().__init__(perform, capacity, report, backing=backing, ladder=())
        self._keeper = keeper
        self._sweep = sweep

    def tick(self, now: float) -> None:  # noqa: ARG002 - the threads keep the time of their jobs
        self._keeper.check()
        if self._sweep is not None:
            self._sweep()


class Attempt:
    """One job in a process group of its own, as the thread has it that attends it."""

    def __init__(
        self, job: ClaimedJob, stop: Stop, group: Group, backing: Backing, *, ladder: Ladder
    ) -> None:
        self._job = job
        self._stop = stop
        self._group = group
        self._backing = backing
        self._ladder = ladder
        self._climb = Climb(stop)
        self._killed_at: float | None = None
        self._tail = Tail()
        running = current.get()
        if running is not None:  # what is logged for the job is kept with what it writes
            running.tail = self._tail

    def _begin(self) -> None:
        """The job's own time begins."""
        self._stop.deadline = deadline(self._job, clock())

    def _press(self) -> None:
        """Ask it if its timeout has passed, and take the rungs that are due."""
        now = clock()
        # Not the runner's deadline: a job's time begins with its handler, after an import.
        if self._stop.deadline is not None and self._stop.deadline <= now:
            self._stop.ask(Interrupt.TIMEOUT, now)
        for rung in self._climb.due(self._ladder, now):
            match rung:
                case Rung.FLAG:
                    self._set_flag()
                case Rung.TERM:
                    self._group.signal(SIGTERM)
                    self._stop.rung = rung
                case Rung.KILL:
                    self._group.signal(SIGKILL)
                    self._stop.rung, self._killed_at = rung, clock()
                case Rung.QUERIES:
                    self._backing.cancel_queries(self._job)
                case Rung.TASK:
                    raise AssertionError(rung)
                case _ as never:
                    assert_never(never)

    def _set_flag(self) -> None:
        """Tell the job that it is to stop, if it can hear that."""

    @property
    def _in_vain(self) -> bool:
        """Whether it got SIGKILL a while ago and has not ended."""
        return self._killed_at is not None and clock() - self._killed_at > DIE_WITHIN

    def _end(self, *, forced: bool) -> list[Process]:
        """Leave nothing behind: what it started ends with it, and what left its group if forced.

        Gives what cannot be ended.
        """
        if forced:
            survivors = self._group.end(f"PGAPPNAME={self._job.application_name}")
            self._group.bury(1.0)
        elif self._group.bury(1.0) and not self._group.inhabited:
            return []
        else:
            survivors = self._group.end()
        # The server goes on with what nobody waits for any more.
        self._backing.cancel_queries(self._job)
        return survivors

    def _tell(self, verdict: Verdict, survivors: list[Process]) -> Verdict:
        """The verdict, which names what is left; people are told of that, too."""
        if survivors:
            left = ", ".join(map(str, survivors))
            self._backing.complain(self._job, f"ended, but it left processes running: {left}")
        return naming(verdict, survivors)


def naming(verdict: Verdict, survivors: list[Process]) -> Verdict:
    """The verdict, with the processes that could not be ended in its reason."""
    if not survivors:
        return verdict
    shown = f"still running: {', '.join(map(str, survivors[:5]))}"
    match verdict:
        case Failed(error=error):
            return replace(verdict, error=f"{error}; {shown}")
        case Cancelled(reason=reason):
            return replace(verdict, reason=f"{reason}; {shown}")
        case _:
            return verdict
