"""Running claimed jobs: on the event loop, in threads, as commands. Nothing here knows SQL.

A runner is given claimed jobs, runs at most `capacity` at once, and reports a verdict for each.
"""

from collections.abc import Callable, Iterable
from threading import Event
from typing import Protocol, TypeAlias

from pgq.model import ClaimedJob, Verdict
from pgq.registry import Job

Report: TypeAlias = Callable[[ClaimedJob, Verdict, float], None]
"""Takes the verdict of a job, and the seconds it ran; called on the event loop's thread."""


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

    def cancel(self, job_ids: Iterable[int]) -> None:
        """Ask these running jobs to end as cancelled; ids that are not here are ignored."""

    def expire(self, now: float) -> None:
        """Ask the jobs whose timeout has passed to end; `now` is on the clock of `clock()`."""

    def hand_back(self) -> None:
        """Ask all running jobs to end as handed back."""

    def abandon(self) -> list[ClaimedJob]:
        """Forget the jobs that still run and cannot be stopped; the process ends next."""


def view(job: ClaimedJob, cancelled: Event) -> Job:
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
    )
