"""Who was declared dead, and who ended: only who had died or stood still may be. Pure."""

from collections.abc import Iterator
from math import inf
from signal import SIGTERM

from tests.chaos.history import Process, Worker
from tests.chaos.timeline import LAG, Timeline
from tests.chaos.violations import Name, Violation, of_process

STARTING = 15.0
"""A process that could not reach the server as it started has given up within this."""


def check(timeline: Timeline) -> Iterator[Violation]:
    """Living workers that were declared dead, lost jobs of living ones, and unbidden ends."""
    for worker in timeline.history.workers:
        yield from _declared(timeline, worker)
    yield from _lost(timeline)
    dead = {
        timeline.process_of(worker.id)
        for worker in timeline.history.workers
        if worker.died_at is not None
    }
    for process in timeline.history.processes:
        if process.name not in dead:
            yield from _ended(timeline, process)


def _declared(timeline: Timeline, worker: Worker) -> Iterator[Violation]:
    process = timeline.process_of(worker.id)
    if worker.died_at is None or process is None:
        return
    gone = timeline.gone(process) <= worker.died_at
    if not gone and not timeline.might_die(process, worker.died_at):
        evidence = (
            f"w-{worker.id} at {worker.died_at:.3f}, alive until {timeline.gone(process):.3f}"
        )
        yield of_process(Name.FALSE_DEATH, process, evidence)


def _lost(timeline: Timeline) -> Iterator[Violation]:
    """A job is only taken from a worker that was declared dead or said that it stopped."""
    workers = {worker.id: worker for worker in timeline.history.workers}
    for attempt in timeline.history.attempts:
        if attempt.outcome != "lost":
            continue
        worker = workers.get(attempt.worker or 0)
        ends = [inf] if worker is None else [worker.died_at, worker.stopped_at]
        if min((end for end in ends if end is not None), default=inf) > attempt.at + LAG / 10:
            process = timeline.process_of(attempt.worker) or "unknown"
            evidence = f"job {attempt.job} was taken from w-{attempt.worker}, which was not dead"
            yield of_process(Name.FALSE_DEATH, process, evidence)


def _ended(timeline: Timeline, process: Process) -> Iterator[Violation]:
    """Nothing but a signal ends a worker that has started, or that it was not heard for long."""
    name, code = process.name, process.exit_code
    if process.ended is None or timeline.killed(name) < inf:
        return
    # Before it listens to signals one ends it, as it does any program.
    orderly = code is not None and (code >= 0 or (process.ready is None and code == -SIGTERM))
    told = timeline.told(name) < inf and orderly
    if code == 1 and timeline.unheard(name, process.ended, process.ended):
        return  # its jobs could not be ended otherwise, and others might have run them
    unreachable = process.ready is None and timeline.unreachable(process.began, process.ended)
    if not told and (not unreachable or process.ended - process.began > STARTING):
        yield of_process(Name.ENDED, name, f"exit code {code} at {process.ended:.3f}")
