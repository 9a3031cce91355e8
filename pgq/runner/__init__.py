"""Running claimed jobs: on the event loop, in threads, in processes, as commands. No SQL here.

A runner is given claimed jobs, runs at most `capacity` at once, and reports a verdict for each.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Event
from typing import Protocol, TypeAlias

from pgq.model import ClaimedJob, Verdict
from pgq.registry import Job
from pgq.registry.job import Tools
from pgq.runner.interrupt import Interrupt

Report: TypeAlias = Callable[[ClaimedJob, Verdict, float], None]
"""Takes the verdict of a job, and the seconds it ran; called on the event loop's thread."""


Wanted: TypeAlias = Callable[[ClaimedJob], bool]
"""Tells which jobs are meant."""


class Runner(Protocol):
    """What the worker needs of each way to run jobs. Called on the event loop's thread."""

    capacity: int

    @property
    def running(self) -> int:
        """How many jobs have started and not ended."""

    @property
    def waiting(self) -> int:
        """How many jobs were given and have not started."""

    def submit(self, jobs: Iterable[ClaimedJob]) -> None:
        """Take jobs to run, in this order."""

    def withdraw(self) -> list[ClaimedJob]:
        """Take back the jobs that have not started."""

    def ask(self, cause: Interrupt, wanted: Wanted | None = None) -> None:
        """Ask the running jobs that are wanted, or all, to end."""

    def ask_ahead(self, cause: Interrupt, wanted: Wanted) -> None:
        """Ask those of them that hear it without the event loop, which a handler may block.

        From any thread; ask() asks all of them.
        """

    def blocking(self) -> ClaimedJob | None:
        """The job whose handler has the event loop at this moment; from any thread."""

    def tick(self, now: float) -> None:
        """Ask the jobs whose timeout has passed; go on with those that were asked and still run.

        `now` is on the clock of `clock()`.
        """

    def started(self) -> list[ClaimedJob]:
        """The jobs that have started and whose end is not reported; none of those that wait."""

    def close(self) -> None:
        """Let go of what waits for jobs: none will come."""

    def stubborn(self) -> list[ClaimedJob]:
        """Those of them that were made to end, in vain; may be called from any thread."""


@dataclass(frozen=True, slots=True)
class Backing:
    """What the worker does for its runners; each may be called from any thread."""

    dsn: str
    note_progress: Callable[[ClaimedJob, str], None]
    """A running job said how far it is, as the text of a JSON object."""
    cancel_queries: Callable[[ClaimedJob], None]
    """End the statements that this attempt's own database connections run, soon."""
    complain: Callable[[ClaimedJob, str], None]
    """Tell people what a running job does that it should not."""


def view(job: ClaimedJob, cancelled: Event, backing: Backing) -> Job:
    """The job as its handler sees it."""
    return Job(
        id=job.id,
        queue=job.queue,
        kind=job.kind,
        payload=job.payload,
        priority=job.priority,
        scheduled_at=job.scheduled_at,
        attempt=job.attempts,
        max_attempts=job.max_attempts,
        timeout=job.timeout,
        cancelled=cancelled,
        tools=Tools(
            dsn=backing.dsn,
            application_name=job.application_name,
            note=lambda text: backing.note_progress(job, text),
        ),
    )
