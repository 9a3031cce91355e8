"""How long the jobs of a killed worker took to run again, against what is promised. Pure.

The promise is 5 seconds; through a pooler, where only silence tells of a death, the visibility
timeout, a beat and a poll. It binds when another worker can keep it. Each job of each killed worker
is a sample, and one that cannot be judged by the promise says why.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from statistics import median

from tests.chaos.history import Attempt, Execution, History
from tests.chaos.timeline import BEAT, LAG, Timeline
from tests.chaos.violations import Name, Violation, of_job

DIRECT = 5.0
"""A job runs again within this after its worker was killed."""

POLL = 2.4
"""Longest time between two looks of an idle worker."""


class Excuse(StrEnum):
    """Why the promise does not bind a sample."""

    BACKOFF = "not its first loss: it waits for the backoff"
    USED_UP = "its attempts were used up"
    CLAIMER_DIED = "who claimed it next died too, or handed it back"
    SERVER_DOWN = "the server was down in the meantime"
    NO_HELPER = "no other worker with a session older than 5 seconds"
    SLEEPER = "its wake-up may have gone to a worker that stood still: others find it by polling"


@dataclass(frozen=True, slots=True)
class Sample:
    """One job that a killed worker held."""

    job: int
    killed_at: float
    given_back: float
    """Seconds after the kill."""
    again: float | None
    """Seconds after the kill until it ran again."""
    excuse: Excuse | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """All samples of a run, in short."""

    promised: float
    judged: int
    median: float | None
    longest: float | None
    excused: Mapping[str, "Excused"]


@dataclass(frozen=True, slots=True)
class Excused:
    """The samples with one excuse."""

    samples: int
    longest: float


class Judge:
    """Finds the samples, and judges them."""

    def __init__(self, timeline: Timeline) -> None:
        history: History = timeline.history
        self._timeline = timeline
        self._jobs = {job.id: job for job in history.jobs}
        self._executions: dict[int, list[Execution]] = defaultdict(list)
        for found in sorted(history.executions, key=lambda found: found.start):
            self._executions[found.job].append(found)
        self._lost = [attempt for attempt in history.attempts if attempt.outcome == "lost"]
        self._died: dict[int | None, float] = {
            worker.id: worker.died_at or inf for worker in history.workers
        }
        self._losses = Counter((lost.job, lost.number) for lost in self._lost)
        pooled = history.rules.pooled
        self.given_back = history.rules.visibility + BEAT if pooled else DIRECT
        self.promised = self.given_back + POLL if pooled else DIRECT
        self.samples: list[Sample] = []

    def check(self) -> Iterator[Violation]:
        """Samples that are later than they may be; all are in `samples` afterwards."""
        for lost in self._lost:
            process = self._timeline.process_of(lost.worker)
            killed = inf if process is None else self._timeline.killed(process)
            # Others were cut off, left without a farewell, or were dead before they were killed.
            if process is not None and killed <= min(lost.at, self._died.get(lost.worker, inf)):
                yield from self._sample(lost, process, killed)

    def _sample(self, lost: Attempt, process: str, killed: float) -> Iterator[Violation]:
        helped = self._timeline.helped(killed + self.given_back, process)
        again = self._next(lost)
        excuse = self._excuse(lost, killed, helped, again)
        after = None if again is None else again.start - killed
        self.samples.append(Sample(lost.job, killed, lost.at - killed, after, excuse))
        patience = self._timeline.history.rules.patience
        if lost.at > helped + patience:
            evidence = f"given back {lost.at - killed:.3f} s after the kill of {process}, "
            yield of_job(Name.LATE, lost.job, f"{evidence}and {helped - killed:.3f} s were due")
        if excuse is None and after is not None and after > self.promised + patience:
            evidence = f"ran again {after:.3f} s after the kill of {process}"
            yield of_job(Name.LATE, lost.job, f"{evidence}, given back at {lost.at - killed:.3f}")

    def _next(self, lost: Attempt) -> Execution | None:
        later = (
            found
            for found in self._executions[lost.job]
            if found.attempt > lost.number and found.start >= lost.at - LAG / 10
        )
        return next(later, None)

    def _excuse(
        self, lost: Attempt, killed: float, helped: float, again: Execution | None
    ) -> Excuse | None:
        job = self._jobs.get(lost.job)
        if any(self._losses[lost.job, number] for number in range(1, lost.number)):
            return Excuse.BACKOFF
        if again is None and job is not None and lost.number >= job.max_attempts:
            return Excuse.USED_UP
        if again is None or again.attempt > lost.number + 1:
            return Excuse.CLAIMER_DIED
        if self._timeline.down(killed, again.start):
            return Excuse.SERVER_DOWN
        if helped > killed + self.given_back:
            return Excuse.NO_HELPER
        if self._timeline.stood_still(lost.at, again.start):
            return Excuse.SLEEPER
        return None

    def summary(self) -> Recovery:
        """Median and maximum of what the promise binds, and how many it does not bind, and why."""
        judged = [_after(sample) for sample in self.samples if sample.excuse is None]
        excused: dict[str, list[float]] = defaultdict(list)
        for sample in self.samples:
            if sample.excuse is not None:
                excused[sample.excuse].append(_after(sample))
        return Recovery(
            promised=self.promised,
            judged=len(judged),
            median=round(median(judged), 3) if judged else None,
            longest=round(max(judged), 3) if judged else None,
            excused={
                str(excuse): Excused(len(found), round(max(found), 3))
                for excuse, found in sorted(excused.items())
            },
        )


def _after(sample: Sample) -> float:
    return sample.given_back if sample.again is None else sample.again
