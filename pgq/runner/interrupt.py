"""Why a running job was asked to stop, what it ends as then, and the clock of timeouts. Pure."""

import time
from enum import Enum

from pgq.model import Cancelled, ClaimedJob, Failed, HandedBack, Verdict
from pgq.text import format_duration

# Goes on while the host is suspended, as the database's clock does.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock() -> float:
    """Seconds on the clock that timeouts are measured by."""
    return time.clock_gettime(_CLOCK)


class Interrupt(Enum):
    """Who wants a running job to stop."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    HAND_BACK = "hand back"


def interrupted(job: ClaimedJob, cause: Interrupt) -> Verdict:
    """What a job ends as that stopped because it was asked to."""
    match cause:
        case Interrupt.TIMEOUT:
            assert job.timeout is not None
            return Failed(f"timed out after {format_duration(job.timeout)}", timed_out=True)
        case Interrupt.CANCEL:
            return Cancelled("cancelled while it ran")
        case Interrupt.HAND_BACK:
            return HandedBack()


def deadline(job: ClaimedJob, now: float) -> float | None:
    """When a job that starts now has run too long; None if it may run for ever."""
    return None if job.timeout is None else now + job.timeout.total_seconds()
