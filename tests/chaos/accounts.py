"""Whether the rows add up: nothing lost, everything ended, each attempt charged once. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.chaos.history import Attempt, History, How, Job
from tests.chaos.violations import Name, Violation, of_job


def check(history: History) -> Iterator[Violation]:
    """Everything that can be said from the rows, without the times of events."""
    attempts: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in history.attempts:
        attempts[attempt.job].append(attempt)
    yield from _lost(history)
    for job in history.jobs:
        yield from _ended(job, attempts[job.id])
        yield from _charged(job, attempts[job.id])
    yield from _counted(history, attempts)
    yield from _written(history)


def _lost(history: History) -> Iterator[Violation]:
    jobs = {job.id for job in history.jobs}
    for job in sorted(set(history.orders) - jobs):
        yield of_job(Name.LOST, job, "the producer's row was committed with it")
    for job in sorted(jobs - set(history.orders)):
        yield of_job(Name.UNORDERED, job, "enqueued in a transaction that was not committed")
    missing = history.acknowledged - len(history.orders)
    if missing > 0:
        yield Violation(Name.LOST, f"{missing} jobs", "the producer heard that they are committed")
    ended_rows = {attempt.job for attempt in history.attempts} - jobs
    for job in sorted(ended_rows):
        yield of_job(Name.LOST, job, "it has attempts")


def _ended(job: Job, attempts: list[Attempt]) -> Iterator[Violation]:
    match job.status:
        case "done":
            pass
        case "failed":
            last = max(attempts, key=lambda attempt: attempt.number, default=None)
            reason = None if last is None else last.error
            if not job.last_error or job.last_error != reason:
                evidence = f"last error {job.last_error!r}, its last attempt's {reason!r}"
                yield of_job(Name.NO_REASON, job.id, evidence)
        case _:
            evidence = f"{job.status}, attempt {job.attempts}/{job.max_attempts}"
            yield of_job(Name.UNFINISHED, job.id, evidence)
    if job.lease is not None and job.status != "running":
        yield of_job(Name.UNFINISHED, job.id, f"{job.status} with a lease")


def _charged(job: Job, attempts: list[Attempt]) -> Iterator[Violation]:
    """Each attempt from 1 on is either recorded, or the last one and done."""
    numbers = Counter(attempt.number for attempt in attempts)
    for number, times in sorted(numbers.items()):
        if times > 1:
            yield of_job(Name.CHARGED_TWICE, job.id, f"attempt {number}, {times} times")
    if job.status in ("done", "failed"):
        wanted = set(range(1, job.attempts + 1))
        recorded = set(numbers) | ({job.attempts} if job.status == "done" else set())
        if recorded != wanted or (job.status == "done" and job.attempts in numbers):
            evidence = f"{job.status} with {job.attempts} charged, recorded {sorted(numbers)}"
            yield of_job(Name.MISCOUNTED, job.id, evidence)
    if job.attempts > job.max_attempts:
        yield of_job(Name.TOO_MANY, job.id, f"{job.attempts} of {job.max_attempts}")
    lost = sum(attempt.outcome == "lost" for attempt in attempts)
    if lost != job.losses:
        evidence = f"{job.losses} counted, {lost} recorded"
        yield of_job(Name.MISCOUNTED_LOSSES, job.id, evidence)


def _counted(history: History, attempts: dict[int, list[Attempt]]) -> Iterator[Violation]:
    statuses = Counter(job.status for job in history.jobs)
    ended = {job.id for job in history.jobs if job.status in ("failed", "cancelled")}
    retried = sum(len(found) - (job in ended and bool(found)) for job, found in attempts.items())
    counted = history.counters
    for what, has, wanted in (
        ("done", counted.done, statuses["done"]),
        ("failed", counted.failed, statuses["failed"]),
        ("retried", counted.retried, retried),
    ):
        if has != wanted:
            yield Violation(Name.COUNTERS, what, f"{has} counted, and the rows say {wanted}")


def _written(history: History) -> Iterator[Violation]:
    """Handlers note that they are done after their row is committed, and before pgq hears it."""
    ran = {(found.job, found.attempt, found.process) for found in history.executions}
    there = {(row.job, row.attempt, row.process) for row in history.written}
    done = {
        (found.job, found.attempt, found.process)
        for found in history.executions
        if found.how is How.DONE
    }
    for job, attempt, process in sorted(there - ran):
        yield of_job(Name.UNEXECUTED_ROW, job, f"attempt {attempt} in process {process}")
    for job, attempt, process in sorted(done - there):
        yield of_job(Name.NOT_WRITTEN, job, f"attempt {attempt} in process {process}")
    attempts_done = {(job, attempt) for job, attempt, _ in done}
    for found in history.jobs:
        if found.status == "done" and (found.id, found.attempts) not in attempts_done:
            yield of_job(Name.NOT_EXECUTED, found.id, f"attempt {found.attempts}")
