"""The values of the queue and the transition table. Pure: nothing here touches the world."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

MAX_NAME = 200
"""Longest queue or kind name, in characters (also a constraint of pgq.jobs)."""

MAX_SNOOZES = 1000
"""After this many snoozes the next one counts as a failed attempt (also in settle.sql)."""


class Status(StrEnum):
    """What a job is; scheduled, retrying and blocked are views of pending."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Verb(StrEnum):
    """What can be done to a job."""

    CLAIM = "claim"
    FINISH = "finish"
    FAIL = "fail"
    FAIL_LAST = "fail the last attempt"
    BURY = "bury"
    SNOOZE = "snooze"
    HAND_BACK = "hand back"
    STOP = "stop as cancelled"
    REAP = "reap"
    REAP_LAST = "reap the last attempt"
    CANCEL = "cancel"
    KILL = "kill"
    FORCE_KILL = "kill with force"
    REQUEUE = "requeue"
    FORCE_REQUEUE = "requeue with force"


TRANSITIONS: Mapping[tuple[Status, Verb], Status] = {
    (Status.PENDING, Verb.CLAIM): Status.RUNNING,
    (Status.PENDING, Verb.CANCEL): Status.CANCELLED,
    (Status.PENDING, Verb.KILL): Status.CANCELLED,
    (Status.PENDING, Verb.FORCE_KILL): Status.CANCELLED,
    (Status.RUNNING, Verb.FINISH): Status.DONE,
    (Status.RUNNING, Verb.FAIL): Status.PENDING,
    (Status.RUNNING, Verb.FAIL_LAST): Status.FAILED,
    (Status.RUNNING, Verb.BURY): Status.FAILED,
    (Status.RUNNING, Verb.SNOOZE): Status.PENDING,
    (Status.RUNNING, Verb.HAND_BACK): Status.PENDING,
    (Status.RUNNING, Verb.STOP): Status.CANCELLED,
    (Status.RUNNING, Verb.REAP): Status.PENDING,
    (Status.RUNNING, Verb.REAP_LAST): Status.FAILED,
    # Requests: the worker hears of them. What the job ends as is the verb that comes next.
    (Status.RUNNING, Verb.CANCEL): Status.RUNNING,
    (Status.RUNNING, Verb.KILL): Status.RUNNING,
    (Status.RUNNING, Verb.FORCE_KILL): Status.CANCELLED,
    (Status.RUNNING, Verb.FORCE_REQUEUE): Status.PENDING,
    (Status.DONE, Verb.REQUEUE): Status.PENDING,
    (Status.DONE, Verb.FORCE_REQUEUE): Status.PENDING,
    (Status.FAILED, Verb.REQUEUE): Status.PENDING,
    (Status.FAILED, Verb.FORCE_REQUEUE): Status.PENDING,
    (Status.CANCELLED, Verb.REQUEUE): Status.PENDING,
    (Status.CANCELLED, Verb.FORCE_REQUEUE): Status.PENDING,
}
"""Every legal change; whatever is not here changes nothing. ARCHITECTURE.md draws it."""

ENDS_CANCELLED = frozenset(
    {Verb.FAIL, Verb.FAIL_LAST, Verb.BURY, Verb.SNOOZE, Verb.HAND_BACK, Verb.REAP, Verb.REAP_LAST}
)
"""The verbs that make a running job `cancelled` once it was asked to cancel, or to be killed."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to enqueue. What is None comes from the kind's row in pgq.kinds, else the defaults.

    At most one of `delay` and `scheduled_at`; neither means due now. The database's clock is the
    one that decides when a job is due.
    """

    kind: str
    payload: Any = field(default_factory=dict)
    queue: str | None = None
    priority: int = 0
    delay: timedelta | None = None
    scheduled_at: datetime | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None
    unique_key: str | None = None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The answer to an enqueue.

    `duplicate`: an unfinished job had the unique key already; `id` is that job's.
    """

    id: int
    duplicate: bool = False


class ClaimedJob(NamedTuple):
    """A job as its worker gets it. (id, lease) is the right to change it.

    A named tuple, since a worker makes one for each job it runs.
    """

    id: int
    lease: int
    queue: str
    kind: str
    payload: Mapping[str, Any]
    priority: int
    scheduled_at: datetime
    attempts: int
    max_attempts: int
    timeout: timedelta | None

    @property
    def application_name(self) -> str:
        """What the database connections of this attempt are called, and found by."""
        return f"pgq-job-{self.id}-{self.lease & 0xFFFF_FFFF_FFFF_FFFF:016x}"


@dataclass(frozen=True, slots=True)
class Done:
    """The handler returned; `note` says why its result could not be kept."""

    result: str | None = None
    """JSON text, or None for no result."""
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt that may be retried: after `delay`, or after the default backoff if None."""

    error: str
    traceback: str | None = None
    delay: timedelta | None = None
    timed_out: bool = False
    output: str | None = None
    """The end of what it wrote or logged; also below."""


@dataclass(frozen=True, slots=True)
class Buried:
    """Failed for good, whatever attempts are left."""

    error: str
    traceback: str | None = None
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Snoozed:
    """Again after `delay`; the attempt is not charged."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Ended without being done, as the handler or an operator wanted."""

    reason: str
    output: str | None = None


@dataclass(frozen=True, slots=True)
class HandedBack:
    """The worker stops: again now; the attempt is not charged."""


Verdict: TypeAlias = Done | Failed | Buried | Snoozed | Cancelled | HandedBack
"""What became of one attempt; written later, in a batch."""
