"""Histories made up for the tests of the checker: legal ones, told attempt by attempt. Pure.

Each attempt has a worker process of its own, and a helper lives through all of it. Jobs follow one
another with a pause, so that nothing explains what it should not.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from tests.chaos.history import (
    Attempt,
    Counters,
    Event,
    Execution,
    History,
    How,
    Job,
    Killed,
    Process,
    Rules,
    Stopped,
    Terminated,
    Told,
    Worker,
    Written,
)

HELPER = "helper"


class Ending(Enum):
    """What becomes of an attempt."""

    DONE = "done"
    FAILED = "failed"
    KILLED = "its process is killed while it runs"
    UNSTARTED = "its process is killed before it starts"
    UNWRITTEN = "it is done, and its process is killed before that is written"
    HANDED_BACK = "its process is told to end"
    CUT_OFF = "its process stands still for longer than the visibility timeout"
    SESSION_ENDED = "its process stands still while its session ends"


@dataclass
class Story:
    """Tells a history; `now` moves on with each attempt."""

    now: float = 100.0
    jobs: list[Job] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def job(self, *endings: Ending, max_attempts: int = 10) -> int:
        """A job whose attempts end like this; gives its id."""
        job = Job(
            id=len(self.jobs) + 1,
            kind="work",
            status="pending",
            attempts=0,
            max_attempts=max_attempts,
        )
        for ending in endings:
            job = self._attempt(replace(job, attempts=job.attempts + 1), ending)
        self.jobs.append(job)
        self.now += 100
        return job.id

    def history(self) -> History:
        """All that was told, with counters that fit."""
        last = self.now
        helper = Process(name=HELPER, pid=1, began=0, ready=1, ended=last + 2, exit_code=0)
        end = Told(at=last + 1, process=HELPER)
        return recounted(
            History(
                rules=Rules(),
                orders=tuple(job.id for job in self.jobs),
                acknowledged=len(self.jobs),
                jobs=tuple(self.jobs),
                attempts=tuple(self.attempts),
                workers=(*self.workers, Worker(id=1, pid=1, started_at=1, stopped_at=last + 2)),
                counters=Counters(done=0, failed=0, retried=0),
                written=tuple(self.written),
                executions=tuple(self.executions),
                processes=(*self.processes, helper),
                events=(*self.events, end),
            )
        )

    def _attempt(self, job: Job, ending: Ending) -> Job:
        name = f"p{len(self.processes) + 2}"
        match ending:
            case Ending.DONE:
                self._executed(job, name, 1.0, How.DONE)
                self._stopped(name, told=3.0, ended=4.0)
                self.now += 2
                return replace(job, status="done", finished_at=self.now - 0.9)
            case Ending.FAILED:
                self._executed(job, name, 1.0, How.FAILED)
                self._stopped(name, told=3.0, ended=4.0)
                return self._charged(job, "failed", "Unlucky", 1.1)
            case Ending.HANDED_BACK:
                self._executed(job, name, 3.0, How.STOPPED)
                self._stopped(name, told=1.0, ended=3.5)
                self.now += 3.2
                return replace(job, attempts=job.attempts - 1)
            case Ending.KILLED | Ending.UNSTARTED | Ending.UNWRITTEN:
                if ending is Ending.KILLED:
                    self._executed(job, name, None, None)
                elif ending is Ending.UNWRITTEN:
                    self._executed(job, name, 0.9, How.DONE)
                return self._killed(job, name)
            case Ending.CUT_OFF:
                self._executed(job, name, 15.2, How.STOPPED)
                self._event(Stopped(at=1.0, until=15.0, process=name))
                return self._dead(job, name, lost=12.0, ended=16.0, code=1)
            case Ending.SESSION_ENDED:
                self._executed(job, name, 8.2, How.STOPPED)
                self._event(Stopped(at=1.0, until=8.0, process=name))
                self._event(Terminated(at=2.0, role="pgq worker heartbeat", beats=name))
                return self._dead(job, name, lost=5.0, ended=9.0, code=1)

    def _event(self, event: Stopped | Terminated | Killed | Told) -> None:
        """An event whose times count from now."""
        if isinstance(event, Stopped):
            event = replace(event, until=event.until + self.now)
        self.events.append(replace(event, at=event.at + self.now))

    def _executed(self, job: Job, process: str, end: float | None, how: How | None) -> None:
        execution = Execution(
            job=job.id,
            attempt=job.attempts,
            process=process,
            start=self.now,
            end=None if end is None else self.now + end,
            how=how,
        )
        self.executions.append(execution)
        if how is How.DONE:
            self.written.append(Written(job=job.id, attempt=job.attempts, process=process))

    def _stopped(self, name: str, *, told: float, ended: float) -> None:
        """A process that was told to end, and did."""
        self._event(Told(at=told, process=name))
        self._process(name, ended=ended, code=0, died=None)

    def _killed(self, job: Job, name: str) -> Job:
        self._event(Killed(at=1.0, process=name))
        return self._dead(job, name, lost=4.5, ended=1.001, code=-9)

    def _dead(self, job: Job, name: str, *, lost: float, ended: float, code: int) -> Job:
        """A process that others declared dead."""
        self._process(name, ended=ended, code=code, died=lost)
        return self._charged(replace(job, losses=job.losses + 1), "lost", f"worker {name}", lost)

    def _process(self, name: str, *, ended: float, code: int, died: float | None) -> None:
        number = len(self.processes) + 2
        began = self.now - 10
        self.processes.append(
            Process(
                name=name,
                pid=number,
                began=began,
                ready=began + 1,
                ended=self.now + ended,
                exit_code=code,
            )
        )
        self.workers.append(
            Worker(
                id=number,
                pid=number,
                started_at=began + 1,
                died_at=None if died is None else self.now + died,
                stopped_at=self.now + ended if died is None else None,
            )
        )

    def _charged(self, job: Job, outcome: str, error: str, after: float) -> Job:
        """Record an attempt that did not succeed; the next one begins a moment later."""
        at = self.now + after
        self.attempts.append(
            Attempt(
                job=job.id,
                number=job.attempts,
                worker=len(self.processes) + 1,
                outcome=outcome,
                error=error,
                at=at,
            )
        )
        self.now = at + 0.1
        if job.attempts < job.max_attempts:
            return replace(job, last_error=error)
        return replace(job, status="failed", last_error=error, finished_at=at)


def recounted(history: History) -> History:
    """The same with the counters that its rows say."""
    statuses = Counter(job.status for job in history.jobs)
    failed = {job.id for job in history.jobs if job.status == "failed"}
    last = {attempt.job for attempt in history.attempts if attempt.job in failed}
    return replace(
        history,
        counters=Counters(
            done=statuses["done"],
            failed=statuses["failed"],
            retried=len(history.attempts) - len(last),
        ),
    )


def told(jobs: Iterable[tuple[Ending, ...]], *, max_attempts: int = 10) -> History:
    """A history of jobs whose attempts end like this."""
    story = Story()
    for endings in jobs:
        story.job(*endings, max_attempts=max_attempts)
    return story.history()
