"""What may never be, each with a name, and the evidence for one that was found. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Name(StrEnum):
    """The invariants, by what breaks them."""

    LOST = "a job was lost"
    UNORDERED = "a job without the producer's row"
    UNFINISHED = "a job did not end"
    NO_REASON = "a job failed without a reason"
    NOT_EXECUTED = "a job is done, and no execution of its last attempt was"
    NOT_WRITTEN = "an execution was done, and its row is not there"
    UNEXECUTED_ROW = "a row that no execution wrote"
    MISCOUNTED = "attempts do not add up"
    CHARGED_TWICE = "an attempt was recorded twice"
    TOO_MANY = "more attempts than allowed"
    MISCOUNTED_LOSSES = "losses do not add up"
    COUNTERS = "counters do not add up"
    RUN_TWICE = "an attempt ran twice without having been handed back"
    OVERLAP = "two executions of one job at once"
    LINGERED = "an execution went on after its worker had heard of its death"
    DONE_TWICE = "a job was done twice, and the first outcome could have been written"
    AFTER_END = "a job ran after it had ended"
    FALSE_DEATH = "a living worker was declared dead"
    ENDED = "a worker ended by itself"
    LATE = "a killed worker's job came back late"


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken invariant."""

    name: Name
    subject: str
    """`job 17`, or `process 2-5`."""
    evidence: str

    def __str__(self) -> str:
        return f"{self.name}: {self.subject}: {self.evidence}"


def of_job(name: Name, job: int, evidence: str) -> Violation:
    """A violation by what became of a job."""
    return Violation(name, f"job {job}", evidence)


def of_process(name: Name, process: str, evidence: str) -> Violation:
    """A violation by what became of a worker process."""
    return Violation(name, f"process {process}", evidence)
