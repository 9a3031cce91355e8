"""How long to wait before a retry, where a handler chooses it itself. Pure.

The default backoff is pgq.backoff() in the database; a policy here overrides it with a duration.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypeAlias

from pgq.errors import UsageError
from pgq.text import MAX_DURATION

RetryPolicy: TypeAlias = timedelta | Sequence[timedelta] | Callable[[int], timedelta | None]
"""A constant wait; one wait per attempt (the last one repeats); or a function of the attempt."""


def check_retry(policy: RetryPolicy | None) -> None:
    """Raise UsageError for a policy that can never give a duration."""
    waits: Sequence[object]
    match policy:
        case None:
            return
        case timedelta():
            waits = [policy]
        case Sequence() if policy:
            waits = policy
        case _ if callable(policy):
            return
        case _:
            raise UsageError(
                "retry: give a timedelta, a list of them, or a function of the attempt"
            )
    for wait in waits:
        if not isinstance(wait, timedelta) or wait < timedelta(0):
            raise UsageError("retry: each wait must be a timedelta that is not negative")


def retry_delay(policy: RetryPolicy | None, attempt: int) -> timedelta | None:
    """The wait after this failed attempt (from 1); None means the default backoff."""
    match policy:
        case None:
            delay: timedelta | None = None
        case timedelta():
            delay = policy
        case Sequence():
            delay = policy[min(attempt, len(policy)) - 1]
        case _:
            delay = policy(attempt)
    if delay is None:
        return None
    return min(max(delay, timedelta(0)), MAX_DURATION)
