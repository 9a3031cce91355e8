"""Why a running job was asked to stop, what it ends as then, and the clock of timeouts. Pure."""

import time
from enum import IntEnum
from threading import Event, Lock
from typing import TYPE_CHECKING

from pgq.model import Cancelled, ClaimedJob, Failed, HandedBack, Verdict
from pgq.text import format_duration

if TYPE_CHECKING:
    from pgq.runner.ladder import Rung

# Goes on while the host is suspended, as the database's clock does.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock() -> float:
    """Seconds on the clock that timeouts are measured by."""
    return time.clock_gettime(_CLOCK)


class Interrupt(IntEnum):
    """Who wants a running job to stop; a higher one insists more."""

    CANCEL = 1
    """It was asked to, and may refuse."""
    HAND_BACK = 2
    """The worker stops."""
    TIMEOUT = 3
    KILL = 4
    """An operator wants it ended, whatever it takes."""
    LOST = 5
    """Others run it, or soon will: it must end now."""


_asking = Lock()
"""One for all: a lock for each job would cost more than the few that are ever asked."""


class Stop:
    """The wish that one running job ends: nobody's yet, then one that can only grow stronger."""

    __slots__ = ("_event", "asked_at", "cause", "deadline", "first", "rung")

    def __init__(self) -> None:
        self.first: Interrupt | None = None
        """Who asked first: that decides what the job ends as."""
        self.cause: Interrupt | None = None
        """The strongest so far: that decides how far to go."""
        self.asked_at = 0.0
        """When the strongest was told, on the clock of `clock()`."""
        self.rung: Rung | None = None
        """The last rung of the ladder that was taken."""
        self.deadline: float | None = None
        """When the time of a job in a process or command is over; it begins after its start."""
        self._event: Event | None = None

    @property
    def event(self) -> Event:
        """Set once somebody asked; made at first use, since it costs as much as a short job."""
        if self._event is None:
            self._event = Event()
            if self.cause is not None:
                self._event.set()
        return self._event

    def ask(self, cause: Interrupt, now: float) -> bool:
        """Ask for it, from any thread; whether this was stronger than what was asked before."""
        with _asking:  # else a weaker wish that comes at the same time could take its place
            if self.cause is not None and self.cause >= cause:
                return False
            self.first = self.first or cause
            # In this order: another thread that sees the cause reckons with the time.
            self.asked_at = now
            self.cause = cause
        if self._event is not None:
            self._event.set()
        return True


def interrupted(job: ClaimedJob, stop: Stop, *, output: str | None = None) -> Verdict:
    """What a job ends as that stopped because it was asked to."""
    by = f" (ended by {stop.rung})" if stop.rung else ""
    match stop.first:
        case Interrupt.TIMEOUT:
            assert job.timeout is not None
            reason = f"timed out after {format_duration(job.timeout)}{by}"
            return Failed(reason, timed_out=True, output=output)
        case Interrupt.KILL:
            return Cancelled(f"killed by an operator{by}", output)
        case Interrupt.CANCEL if stop.cause is Interrupt.KILL:
            return Cancelled(f"cancelled, then killed by an operator{by}", output)
        case Interrupt.CANCEL:
            return Cancelled("cancelled while it ran", output)
        case Interrupt.HAND_BACK | Interrupt.LOST | None:
            return HandedBack()


def deadline(job: ClaimedJob, now: float) -> float | None:
    """When a job that starts now has run too long; None if it may run for ever."""
    return None if job.timeout is None else now + job.timeout.total_seconds()
