"""What happened in a run, as values: the end state of the database, and the log of events. Pure.

Times are seconds on the monotonic clock of the one host on which everything ran.
"""

from dataclasses import dataclass
from enum import StrEnum


class How(StrEnum):
    """How a handler ended, as it saw it."""

    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    """It was asked to stop, for whatever reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The final row of a job."""

    id: int
    kind: str
    status: str
    attempts: int
    max_attempts: int
    losses: int = 0
    last_error: str | None = None
    lease: int | None = None
    finished_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A recorded attempt: one that was charged and did not succeed."""

    job: int
    number: int
    worker: int | None
    outcome: str
    error: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """The row of a worker; one process may have been several, one after another."""

    id: int
    pid: int
    started_at: float
    died_at: float | None = None
    stopped_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The sums of `throughput`."""

    done: int
    failed: int
    retried: int


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Written:
    """A row that an execution wrote in a transaction of its own."""

    job: int
    attempt: int
    process: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One call of a handler, as it noted it itself. No end: its process ended first."""

    job: int
    attempt: int
    process: str
    start: float
    end: float | None = None
    how: How | None = None
    thread: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A worker process from its start to its end, as its supervisor saw it."""

    name: str
    pid: int
    began: float
    ready: float | None = None
    """When it logged that its worker had started."""
    ended: float | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """SIGKILL was sent."""

    at: float
    process: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """SIGSTOP was sent, and later SIGCONT."""

    at: float
    until: float
    process: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """SIGTERM was sent: the process drains and ends."""

    at: float
    process: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminated:
    """A backend was terminated. `beats`: of which process it carried the heartbeat, if any."""

    at: float
    role: str
    beats: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The server crashed, and was back."""

    at: float
    until: float


Event = Killed | Stopped | Told | Terminated | Outage


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the workers of this run were promised and told; seconds."""

    visibility: float = 10.0
    """Silence after which a worker is dead, whatever its lock."""
    pooled: bool = False
    """Whether a pooler stands between: no lock is held, nobody is woken."""
    grace: float = 2.0
    """How long running jobs may go on after SIGTERM."""
    patience: float = 0.5
    """What a busy host may add to what is promised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All that the judges are given."""

    rules: Rules
    orders: tuple[int, ...]
    """The jobs that the producer's own committed rows name."""
    acknowledged: int
    """How many commits the producer heard of."""
    jobs: tuple[Job, ...]
    attempts: tuple[Attempt, ...]
    workers: tuple[Worker, ...]
    counters: Counters
    written: tuple[Written, ...]
    executions: tuple[Execution, ...]
    processes: tuple[Process, ...]
    events: tuple[Event, ...] = ()
