"""The Runner of jobs that run in processes of their own: a thread attends each, and can end it."""

from collections.abc import Callable
from dataclasses import replace

from pgq.model import Cancelled, ClaimedJob, Failed, Verdict
from pgq.runner import Backing, Report
from pgq.runner.group import Process
from pgq.runner.interrupt import Interrupt
from pgq.runner.keeper import Keeper
from pgq.runner.thread import Perform, ThreadRunner


class GroupRunner(ThreadRunner):
    """A ThreadRunner whose jobs can be ended: when their time is over, or when the worker ends."""

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
        super().__init__(perform, capacity, report, backing=backing)
        self._keeper = keeper
        self._sweep = sweep

    def tick(self, now: float) -> None:
        for running in list(self._running.values()):
            # The job's own, which begins when its handler does: an import may take long.
            deadline = running.stop.deadline
            if deadline is not None and deadline <= now:
                running.stop.ask(Interrupt.TIMEOUT, now)
        self._keeper.check()
        if self._sweep is not None:
            self._sweep()

    def abandon(self) -> list[ClaimedJob]:
        left = super().abandon()
        self._keeper.kill_all()
        return left


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
