"""The Runner of jobs that run in processes of their own: a thread attends each, and can end it."""

from collections.abc import Callable
from dataclasses import replace

from pgq.model import Cancelled, Failed, Verdict
from pgq.registry.app import Isolation
from pgq.runner import Backing, Report
from pgq.runner.group import Process
from pgq.runner.interrupt import Interrupt, Stop
from pgq.runner.keeper import Keeper
from pgq.runner.ladder import LADDERS, Rung
from pgq.runner.output import Tail
from pgq.runner.records import current
from pgq.runner.running import Climb
from pgq.runner.thread import Perform, ThreadRunner


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

    def tick(self, now: float) -> None:
        for running in self._held.values():
            # Not the runner's deadline: a job's time begins with its handler, after an import.
            deadline = running.stop.deadline
            if deadline is not None and deadline <= now:
                running.ask(Interrupt.TIMEOUT, now)
        self._keeper.check()
        if self._sweep is not None:
            self._sweep()


class Rungs:
    """The rungs that are due for one job, each once; a stronger wish begins the ladder again."""

    def __init__(self, isolation: Isolation, stop: Stop) -> None:
        self._ladder = LADDERS[isolation]
        self._stop = stop
        self._cause: Interrupt | None = None
        self._climb = Climb(stop)

    def due(self, now: float) -> list[Rung]:
        """Those to take now, the mildest first."""
        if self._stop.cause is None:
            return []
        if self._stop.cause is not self._cause:
            self._cause = self._stop.cause
            self._climb = Climb(self._stop)
        return list(self._climb.due(self._ladder, now))


def own_tail() -> Tail:
    """Where the output of the job goes that runs in this thread: to what is logged for it."""
    running = current.get()
    tail = Tail()
    if running is not None:
        running.tail = tail
    return tail


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
