"""One running job: what was asked of it, how far it was pressed, and the end of what it logged."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from pgq.model import ClaimedJob
from pgq.runner import Backing
from pgq.runner.interrupt import Interrupt, Stop
from pgq.runner.ladder import HURRY, Rung
from pgq.runner.output import Tail

Ladder = Sequence[tuple[float, Rung]]

VAIN_AFTER = 5.0
"""Seconds after the last rung at which it is said that a job does not stop."""


class Running:
    """A job that a runner runs. Made for each job, so what few jobs need is made when needed."""

    __slots__ = ("_threads", "climb", "deadline", "job", "over", "stop", "tail", "task")

    def __init__(self, job: ClaimedJob) -> None:
        self.job = job
        self.stop = Stop()
        self.deadline: float | None = None
        self.task: asyncio.Task[None] | None = None
        """What its handler runs in, if that is on the event loop."""
        self.over = False
        """Whether its handler has ended; a task that it left behind may still go on."""
        self.tail: Tail | None = None
        """The end of what its handler logged; None: nothing."""
        self.climb: Climb | None = None
        self._threads: list[Future[Any]] | None = None

    @property
    def threads(self) -> list[Future[Any]]:
        """What its handler has given to the event loop's threads."""
        if self._threads is None:
            self._threads = []
        return self._threads

    @property
    def stubborn(self) -> bool:
        """Whether it goes on after all that could be done."""
        return self.climb is not None and self.climb.said

    def ask(self, cause: Interrupt, now: float) -> None:
        """Ask the job to end."""
        if self.stop.ask(cause, now) and self.climb is None:
            self.climb = Climb(self.stop)

    def press(self, ladder: Ladder, backing: Backing, now: float, *, stubborn: str) -> None:
        """Take the rungs that are due; when none helped, complain once, of a `stubborn` one."""
        if self.climb is None:
            return
        for rung in self.climb.due(ladder, now):
            self._take(rung, backing)
        if self.climb.in_vain(ladder, now):
            backing.complain(self.job, stubborn)

    def _take(self, rung: Rung, backing: Backing) -> None:
        self.stop.rung = rung
        match rung:
            case Rung.TASK:
                assert self.task is not None
                self.task.cancel()
            case Rung.QUERIES:
                backing.cancel_queries(self.job)
            case Rung.FLAG:
                pass  # it is set by whoever asks
            case Rung.TERM | Rung.KILL:
                raise AssertionError(rung)


class Climb:
    """How far the ladder was climbed for one job; a stronger wish begins it anew. Pure."""

    __slots__ = ("_cause", "_stop", "_taken", "said")

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._cause: Interrupt | None = None
        """The wish that it is climbed for."""
        self._taken = 0
        self.said = False
        """Whether people know already that it does not stop."""

    def due(self, ladder: Ladder, now: float) -> Iterator[Rung]:
        """The rungs whose time has come, each once. One who may be refused takes only the first."""
        if self._cause is not self._stop.cause:
            self._cause, self._taken = self._stop.cause, 0
        if self._cause is None:
            return
        most = 1 if self._cause is Interrupt.CANCEL else len(ladder)
        while self._taken < min(most, len(ladder)):
            seconds, rung = ladder[self._taken]
            if now < self._at(seconds):
                return
            self._taken += 1
            yield rung

    def in_vain(self, ladder: Ladder, now: float) -> bool:
        """Whether the last rung was taken a while ago and did not help; true only once."""
        if self.said or not ladder or self._taken < len(ladder):
            return False
        self.said = now >= self._at(ladder[-1][0] + VAIN_AFTER)
        return self.said

    def _at(self, seconds: float) -> float:
        hurry = HURRY if self._cause is Interrupt.LOST else 1.0
        return self._stop.asked_at + seconds * hurry
