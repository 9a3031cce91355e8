"""The job as its handler sees it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Any

from pgq.errors import UsageError
from pgq.text import dump_json, storable

if TYPE_CHECKING:
    import psycopg

ROUNDING = 1e-6
"""By how much a fraction that was summed up may miss 0 or 1."""

MAX_NOTE = 200
"""Longest note of a progress that is kept, in characters."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What a worker lends to a handler."""

    dsn: str
    application_name: str
    note: Callable[[str], None]
    """Takes what the handler said of its progress, as the text of a JSON object."""


@dataclass(frozen=True, slots=True, repr=False)
class Job:
    """The job that a handler runs: give a parameter this type to get it.

    `attempt` counts from 1. `cancelled` is set when the job was asked to cancel or timed out, and
    when its worker stops: a handler in a thread or process looks at it and raises; an async one is
    cancelled. Whatever it raises then, the job ends as what was asked; if it returns, it is done.
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
    tools: Tools | None = field(default=None, compare=False)
    """The worker's; None in a test that makes a job by itself."""

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.kind} {self.attempt}/{self.max_attempts}>"

    def progress(self, fraction: float, note: str | None = None) -> None:
        """Say how far this attempt is, from 0 to 1, and at what; people see it within seconds.

        Costs no wait: the worker writes the latest word of each job, every two seconds at most.
        What was said less than that before the job ended may never be written. Raises ValueError
        for a fraction that is not from 0 to 1.
        """
        said: dict[str, Any] = {"fraction": _fraction(fraction)}
        if note is not None:
            said["note"] = storable(str(note), MAX_NOTE)
        if self.tools is not None:
            self.tools.note(dump_json(said, what="progress"))

    def connect(self) -> "psycopg.Connection[Any]":
        """Connect to the queue's database, in autocommit mode, under this attempt's own name.

        What such a connection runs is cancelled when the job is killed or its time is over and
        nothing milder helped. Close it, or use it in a `with`.
        """
        from pgq import db

        tools = self._tools()
        return db.connect(tools.dsn, application_name=tools.application_name, insist=True)

    async def connect_async(self) -> "psycopg.AsyncConnection[Any]":
        """The same for an async handler."""
        from pgq import db

        tools = self._tools()
        return await db.connect_async(
            tools.dsn, application_name=tools.application_name, insist=True
        )

    def _tools(self) -> Tools:
        if self.tools is None:
            raise UsageError(f"job {self.id} runs under no worker: connect by yourself")
        return self.tools


def _fraction(given: float) -> float:
    try:
        fits = -ROUNDING <= given <= 1 + ROUNDING
    except TypeError:
        fits = False
    if not fits:
        raise ValueError(f"progress: give a fraction from 0 to 1, not {repr(given)[:60]}")
    return min(max(round(float(given), 4), 0.0), 1.0)
