"""The job as its handler sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Event
from typing import Any


@dataclass(frozen=True, slots=True, repr=False)
class Job:
    """The job that a handler runs: give a parameter this type to get it.

    `attempt` counts from 1. `cancelled` is set when the job was asked to cancel or timed out, and
    when its worker stops: a handler in a thread looks at it and ends; an async one is cancelled.
    """

    id: int
    queue: str
    kind: str
    payload: Mapping[str, Any]
    priority: int
    scheduled_at: datetime
    attempt: int
    max_attempts: int
    timeout: timedelta | None
    cancelled: Event

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.kind} {self.attempt}/{self.max_attempts}>"
