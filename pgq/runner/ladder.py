"""The ladder by which a running job is made to end: the mildest rung first. Pure."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from pgq.registry.app import Isolation
from pgq.runner.interrupt import Interrupt, Stop


class Rung(StrEnum):
    """A way to end a running job."""

    FLAG = "its flag"
    """`job.cancelled` is set."""
    TASK = "cancellation"
    """CancelledError is raised in the handler."""
    TERM = "SIGTERM"
    """To the process group, grandchildren included."""
    KILL = "SIGKILL"
    """To the process group."""
    QUERIES = "cancelling its queries"
    """The statements that its own database connections run."""


LADDERS: Mapping[Isolation, Sequence[tuple[float, Rung]]] = {
    Isolation.ASYNC: ((0.0, Rung.TASK), (5.0, Rung.QUERIES), (5.0, Rung.TASK)),
    Isolation.THREAD: ((0.0, Rung.FLAG), (5.0, Rung.QUERIES)),
    Isolation.PROCESS: (
        (0.0, Rung.FLAG),
        (2.0, Rung.TERM),
        (7.0, Rung.KILL),
        (7.0, Rung.QUERIES),
    ),
    # A command cannot see a flag: SIGTERM is how it is asked.
    Isolation.COMMAND: ((0.0, Rung.TERM), (5.0, Rung.KILL), (5.0, Rung.QUERIES)),
}
"""The rungs of each way to run, with the seconds after the wish at which each is due."""

HURRY = 0.1
"""By which the times are shortened for a job that others run already."""


def due(isolation: Isolation, cause: Interrupt, *, seconds: float) -> list[Rung]:
    """The rungs to have taken so many seconds after the wish, the mildest first."""
    ladder = LADDERS[isolation]
    if cause is Interrupt.CANCEL:  # it may refuse
        ladder = ladder[:1]
    pace = HURRY if cause is Interrupt.LOST else 1.0
    return [rung for after, rung in ladder if after * pace <= seconds]


class Climb:
    """How far one running job's ladder was climbed. A stronger wish begins it again."""

    __slots__ = ("_cause", "_isolation", "_stop", "_taken")

    def __init__(self, isolation: Isolation, stop: Stop) -> None:
        self._isolation = isolation
        self._stop = stop
        self._cause: Interrupt | None = None
        self._taken = 0

    def next(self, now: float) -> Sequence[Rung]:
        """The rungs to take now, each once; `now` is on the clock of `clock()`."""
        cause = self._stop.cause
        if cause is None:
            return ()
        if cause is not self._cause:
            self._cause, self._taken = cause, 0
        rungs = due(self._isolation, cause, seconds=now - self._stop.asked_at)
        fresh = rungs[self._taken :]
        self._taken = len(rungs)
        return fresh
