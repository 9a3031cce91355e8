"""Runs blocking work in threads: `def` handlers, and commands.

A thread cannot be stopped from outside. A job that was asked to stop keeps its slot, and gets its
verdict, when its thread really ends; so it never runs again beside itself.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Protocol

from pgq.model import ClaimedJob, Failed, Verdict
from pgq.registry import Handler
from pgq.runner import Backing, Report, view
from pgq.runner.fork import end_if_child
from pgq.runner.interrupt import Interrupt, Stop, clock, deadline, interrupted
from pgq.runner.verdict import MAX_ERROR, describe, raised, returned
from pgq.text import storable


class Perform(Protocol):
    """Does one job; returns its verdict, or None if it stopped because it was asked to."""

    def __call__(self, job: ClaimedJob, stop: Stop, /) -> Verdict | None: ...


@dataclass(slots=True)
class _Running:
    job: ClaimedJob
    deadline: float | None
    stop: Stop = field(default_factory=Stop)


class ThreadRunner:
    """A Runner whose jobs block a thread each."""

    def __init__(
        self,
        perform: Perform,
        capacity: int,
        report: Report,
        *,
        backing: Backing,
    ) -> None:
        self.capacity = capacity
        self._perform = perform
        self._report = report
        self._backing = backing
        self._loop = asyncio.get_running_loop()
        self._waiting: SimpleQueue[ClaimedJob] = SimpleQueue()
        self._running: dict[int, _Running] = {}
        """By lease: a job that an operator took back by force may come again beside itself."""
        self._ended: deque[tuple[ClaimedJob, Verdict, float]] = deque()
        self._open = 0
        """How many jobs were given and not reported; changed on the event loop's thread alone."""
        self._threads = 0
        self._delivering = False

    @property
    def running(self) -> int:
        return self._open - self._waiting.qsize()

    @property
    def waiting(self) -> int:
        return self._waiting.qsize()

    def submit(self, jobs: Iterable[ClaimedJob]) -> None:
        for job in jobs:
            self._open += 1
            self._waiting.put(job)
        while self._threads < min(self.capacity, self._open):
            self._threads += 1
            name = f"pgq-job-{self._threads}"
            # A daemon, so that a handler that never ends cannot keep the process alive.
            threading.Thread(target=self._serve, name=name, daemon=True).start()

    def withdraw(self) -> list[ClaimedJob]:
        jobs = []
        while True:
            try:
                jobs.append(self._waiting.get_nowait())
            except Empty:
                return jobs
            self._open -= 1

    def ask(self, cause: Interrupt, job_ids: Iterable[int] | None = None) -> None:
        wanted = None if job_ids is None else set(job_ids)
        now = clock()
        for running in list(self._running.values()):
            if wanted is None or running.job.id in wanted:
                running.stop.ask(cause, now)

    def tick(self, now: float) -> None:
        for running in list(self._running.values()):
            late = running.deadline is not None and running.deadline <= now
            if late and running.stop.ask(Interrupt.TIMEOUT, now):
                self._backing.complain(
                    running.job,
                    "timed out, but a thread cannot be stopped: it keeps its slot until it ends",
                )

    def abandon(self) -> list[ClaimedJob]:
        return [running.job for running in list(self._running.values())]

    def _serve(self) -> None:
        while True:
            job = self._waiting.get()
            began = clock()
            running = _Running(job, deadline(job, began))
            self._running[job.lease] = running
            try:
                verdict = self._perform(job, running.stop)
            except Exception as error:  # noqa: BLE001 - a thread of the worker must not end
                verdict = Failed(storable(describe(error), MAX_ERROR))
            end_if_child()
            if verdict is None:
                verdict = interrupted(job, running.stop)
            self._ended.append((job, verdict, clock() - began))
            del self._running[job.lease]
            if not self._delivering:
                self._delivering = True
                try:
                    self._loop.call_soon_threadsafe(self._deliver)
                except RuntimeError:  # the event loop is closed: the process is about to end
                    return

    def _deliver(self) -> None:
        # The flag first: what is appended from now on schedules another delivery.
        self._delivering = False
        while self._ended:
            self._open -= 1
            self._report(*self._ended.popleft())


def handler_perform(handlers: Mapping[str, Handler], backing: Backing) -> Perform:
    """Perform jobs by calling `def` handlers."""

    def perform(job: ClaimedJob, stop: Stop, /) -> Verdict | None:
        handler = handlers[job.kind]
        try:
            arguments = handler.binding.arguments(job.payload)
            if handler.binding.job_parameter is not None:
                arguments[handler.binding.job_parameter] = view(job, stop.event, backing)
            return returned(handler.function(**arguments))
        except BaseException as error:  # noqa: BLE001 - SystemExit too is only this job's end
            # A handler that gave up because it was asked to ends as what was asked for.
            return None if stop.cause is not None else raised(handler, job, error)

    return perform
