"""What a handler can say besides returning a result: snooze, cancel, retry later, fail for good."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Snooze:
    """Return this to run the job again after `delay`, without charging the attempt."""

    delay: timedelta


def snooze(delay: timedelta) -> Snooze:
    """`return pgq.snooze(timedelta(minutes=5))`: again later, the attempt is not charged.

    A job that is snoozed more than 1,000 times is charged a failed attempt each time.
    """
    if delay < timedelta(0):
        raise ValueError("snooze: the delay must not be negative")
    return Snooze(delay)


class HandlerSignal(Exception):
    """Base of what a handler raises to say how its attempt ended."""

    reason: str = ""


class Cancel(HandlerSignal):
    """Raise to end the job as cancelled: it has become pointless."""

    def __init__(self, reason: str = "cancelled by its handler") -> None:
        self.reason = reason
        super().__init__(reason)


class Fail(HandlerSignal):
    """Raise to fail the job for good, whatever attempts are left."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Retry(HandlerSignal):
    """Raise to fail this attempt and say when the next one is due (None: the job's own policy)."""

    after: timedelta | None = None

    def __init__(self, reason: str = "asked to retry", *, after: timedelta | None = None) -> None:
        if after is not None and after < timedelta(0):
            raise ValueError("Retry: the delay must not be negative")
        self.reason = reason
        self.after = after
        super().__init__(reason)
