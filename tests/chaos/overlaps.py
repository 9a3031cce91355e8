"""Executions of one job beside each other, again, or too late: which of them are documented. Pure.

ARCHITECTURE.md names the exceptions to "one job runs once at a time"; what is in none of them is a
violation. Those that happened are counted and reported, never hidden.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from tests.chaos.history import Attempt, Execution, History, How, Job
from tests.chaos.timeline import LAG, Spell, Timeline
from tests.chaos.violations import Name, Violation, of_job

STOPPING = 9.0
"""Seconds after the grace in which a worker waits for jobs that it told to stop."""

FAREWELL = 10.0
"""Seconds that the last writes of a worker may take."""

WRITES = 5.0
"""An outcome is written within this, if nothing keeps its worker from it."""


class Cause(StrEnum):
    """Why a job was executed beside itself, or once more after it had been done."""

    CUT_OFF = "its worker stood still for longer than the visibility timeout"
    SESSION_ENDED = "its worker stood still while its session ended"
    ENDING = "a thread that was told to stop, of a process about to end"
    DIED = "its worker died before the outcome was written"


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two executions of one job at once, for a documented cause."""

    job: int
    cause: Cause
    seconds: float
    awake: float
    """Of these, those after the worker of the first had gone on again."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """An execution that was done and did not count: the job was executed again."""

    job: int
    cause: Cause


class Judge:
    """Judges what was executed, job by job."""

    def __init__(self, timeline: Timeline) -> None:
        history: History = timeline.history
        self.overlaps: list[Overlap] = []
        self.repeats: list[Repeat] = []
        self._timeline = timeline
        self._jobs = {job.id: job for job in history.jobs}
        self._lost: dict[tuple[int, int], Attempt] = {
            (attempt.job, attempt.number): attempt
            for attempt in history.attempts
            if attempt.outcome == "lost"
        }
        self._executions: dict[int, list[Execution]] = defaultdict(list)
        for found in history.executions:
            self._executions[found.job].append(found)

    def check(self) -> Iterator[Violation]:
        """The violations; what is documented is in `overlaps` and `repeats` afterwards."""
        for number, executions in self._executions.items():
            # By attempt: a worker may begin what it claimed long ago beside a later attempt.
            executions.sort(key=lambda found: (found.attempt, found.start))
            for first, second in combinations(executions, 2):
                yield from self._pair(first, second)
            job = self._jobs.get(number)
            if job is not None:
                yield from self._once(job, executions)
                yield from self._in_time(job, executions)

    def _pair(self, first: Execution, second: Execution) -> Iterator[Violation]:
        end = self._timeline.end
        together = min(end(first), end(second)) - max(first.start, second.start)
        if first.attempt == second.attempt and not self._handed_back(first, second.start):
            yield of_job(Name.RUN_TWICE, first.job, f"{_shown(first)}, then {_shown(second)}")
        if together <= 0:
            return
        cause = self._cause(first, by=second.start)
        if cause is None:
            evidence = f"{_shown(first)} and {_shown(second)}, for {together:.3f} s"
            yield of_job(Name.OVERLAP, first.job, evidence)
            return
        woke = max((spell.end for spell in self._silences(first, by=second.start)), default=0.0)
        awake = min(together, max(0.0, self._timeline.end(first) - woke))
        self.overlaps.append(Overlap(first.job, cause, together, awake))
        if cause is not Cause.ENDING:
            yield from self._lingered(first, by=second.start)

    def _handed_back(self, first: Execution, by: float) -> bool:
        """Whether its worker may have given an attempt back by then, which is not charged."""
        timeline = self._timeline
        told = timeline.told(first.process) <= by
        return told or timeline.unheard(first.process, first.start, by)

    def _cause(self, first: Execution, *, by: float) -> Cause | None:
        """The documented cause for which others may run the job by then, if there is one."""
        for spell in self._silences(first, by=by):
            timed_out = self._timeline.timed_out(spell)
            return Cause.CUT_OFF if timed_out else Cause.SESSION_ENDED
        told = self._timeline.told(first.process)
        handed_back = told + self._timeline.history.rules.grace + STOPPING - LAG
        gone = self._timeline.gone(first.process)
        late = gone - by > FAREWELL + LAG and not self._timeline.down(by, gone)
        if first.thread and handed_back <= by and not late:
            return Cause.ENDING
        return None

    def _silences(self, found: Execution, *, by: float) -> list[Spell]:
        """The spells for which others may run this job by then: it was claimed before their end."""
        timeline = self._timeline
        spells = timeline.silences(found.process, by=by)
        return [spell for spell in spells if found.start <= timeline.heard(found.process, spell)]

    def _lingered(self, first: Execution, *, by: float) -> Iterator[Violation]:
        """A handler ends as soon as its worker hears, or its process does."""
        timeline = self._timeline
        heard = [timeline.heard(first.process, spell) for spell in self._silences(first, by=by)]
        late = timeline.end(first) - max(heard)
        if late > timeline.history.rules.patience:
            yield of_job(Name.LINGERED, first.job, f"{_shown(first)}, {late:.3f} s too long")

    def _once(self, job: Job, executions: list[Execution]) -> Iterator[Violation]:
        """Of the executions that were done one counts; each other one could not be written."""
        done = [found for found in executions if found.how is How.DONE]
        counts = [found for found in done if found.attempt == job.attempts][-1:]
        for found in done:
            if job.status == "done" and found in counts:
                continue
            cause = self._unwritten(found)
            if cause is None:
                yield of_job(Name.DONE_TWICE, job.id, f"{_shown(found)}, and it is {job.status}")
            else:
                self.repeats.append(Repeat(job.id, cause))

    def _unwritten(self, found: Execution) -> Cause | None:
        """Why a done execution's outcome was not written, if that may be."""
        timeline, end = self._timeline, self._timeline.end(found)
        gone = timeline.gone(found.process)
        lost = self._lost.get((found.job, found.attempt))
        if lost is not None:
            cause = self._cause(found, by=lost.at)
            if cause is not None:
                return cause
            hindered = timeline.hindered(found.process, end, gone)
            if gone <= lost.at and (gone - end <= WRITES or hindered):
                return Cause.DIED
            return None
        told = timeline.told(found.process) + timeline.history.rules.grace + STOPPING - LAG
        return Cause.ENDING if found.thread and told <= end else None

    def _in_time(self, job: Job, executions: list[Execution]) -> Iterator[Violation]:
        """Nothing starts after its job has ended, but what was claimed by one that stood still."""
        if job.finished_at is None:
            return
        for found in executions:
            if found.start <= job.finished_at + LAG / 10:
                continue
            lost = (job.id, found.attempt) in self._lost
            if not lost or not self._silences(found, by=found.start):
                late = found.start - job.finished_at
                evidence = f"{job.status} for {late:.3f} s when {_shown(found)} began"
                yield of_job(Name.AFTER_END, job.id, evidence)


def _shown(found: Execution) -> str:
    until = "?" if found.end is None else f"{found.end:.3f}"
    return f"attempt {found.attempt} in {found.process} from {found.start:.3f} to {until}"
