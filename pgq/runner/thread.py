"""Runs blocking work in threads: `def` handlers, and commands.

A thread cannot be stopped from outside. A job that was asked to stop keeps its slot, and gets its
verdict, when its thread really ends; so it never runs again beside itself.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Protocol

from pgq.model import ClaimedJob, Verdict
from pgq.registry import Handler
from pgq.registry.app import Isolation
from pgq.runner import Backing, Report, Wanted, view
from pgq.runner.fork import end_if_child
from pgq.runner.interrupt import Interrupt, Stop, clock, deadline, interrupted
from pgq.runner.ladder import LADDERS
from pgq.runner.output import with_output
from pgq.runner.records import current
from pgq.runner.running import Ladder, Running
from pgq.runner.verdict import left, mishap, returned


class Perform(Protocol):
    """Does one job; returns its verdict, or None if it stopped because it was asked to."""

    def __call__(self, job: ClaimedJob, stop: Stop, /) -> Verdict | None: ...


STUBBORN = "does not stop: a thread cannot be stopped, and keeps its slot until it ends"

SHORT = "waits: the system gives no more threads (ulimit -u, or TasksMax of systemd)"


class ThreadRunner:
    """A Runner whose jobs block a thread each."""

    def __init__(
        self,
        perform: Perform,
        capacity: int,
        report: Report,
        *,
        backing: Backing,
        ladder: Ladder = LADDERS[Isolation.THREAD],
    ) -> None:
        """`ladder`: the rungs that the runner takes; empty if `perform` takes its own."""
        self.capacity = capacity
        self._perform = perform
        self._report = report
        self._backing = backing
        self._ladder = ladder
        self._loop = asyncio.get_running_loop()
        self._waiting: SimpleQueue[Running | None] = SimpleQueue()
        self._held: dict[int, Running] = {}
        """What was given and not reported; changed on the event loop's thread alone.

        By lease: a job that an operator took back by force may come again beside itself.
        """
        self._ended: deque[tuple[ClaimedJob, Verdict, float]] = deque()
        self._threads = 0
        self._short = False
        """Whether the system gave no thread when one was last wanted."""
        self._delivering = False

    @property
    def running(self) -> int:
        return len(self._held) - self._waiting.qsize()

    @property
    def waiting(self) -> int:
        return self._waiting.qsize()

    def submit(self, jobs: Iterable[ClaimedJob]) -> None:
        for job in jobs:
            self._held[job.lease] = running = Running(job)
            self._waiting.put(running)
            self._staff(job)

    def _staff(self, job: ClaimedJob) -> None:
        """Start a thread if there are less than jobs."""
        if self._threads >= min(self.capacity, len(self._held)):
            return
        name = f"pgq-job-{self._threads + 1}"
        # A daemon, so that a handler that never ends cannot keep the process alive.
        thread = threading.Thread(target=self._serve, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # a thread that there is takes the job, or it is handed back soon
            if not self._short:
                self._backing.complain(job, SHORT)
            self._short = True
        else:
            self._threads += 1
            self._short = False

    def withdraw(self) -> list[ClaimedJob]:
        waiting = self._take_waiting()
        for running in waiting:
            del self._held[running.job.lease]
        return [running.job for running in waiting]

    def ask(self, cause: Interrupt, wanted: Wanted | None = None) -> None:
        # Those that wait are asked too, and will not start: a thread may just be taking one.
        now = clock()
        for running in self._held.values():
            if wanted is None or wanted(running.job):
                running.ask(cause, now)
                self._press(running, now)

    def ask_ahead(self, cause: Interrupt, wanted: Wanted) -> None:
        now = clock()
        for running in list(self._held.values()):  # a copy: the loop's thread goes on meanwhile
            if wanted(running.job):
                running.ask(cause, now)

    def blocking(self) -> None:
        return None

    def tick(self, now: float) -> None:
        for running in self._held.values():
            if running.deadline is not None and running.deadline <= now:
                running.ask(Interrupt.TIMEOUT, now)
            self._press(running, now)

    def started(self) -> list[ClaimedJob]:
        waiting = self._take_waiting()
        leases = {running.job.lease for running in waiting}
        for running in waiting:
            self._waiting.put(running)
        return [running.job for lease, running in self._held.items() if lease not in leases]

    def _take_waiting(self) -> list[Running]:
        """Those that no thread has taken, and none takes now."""
        taken: list[Running | None] = []
        with suppress(Empty):
            while True:
                taken.append(self._waiting.get_nowait())
        for _ in range(taken.count(None)):
            self._waiting.put(None)
        return [running for running in taken if running is not None]

    def close(self) -> None:
        for _ in range(self._threads):
            self._waiting.put(None)

    def stubborn(self) -> list[ClaimedJob]:
        return [running.job for running in list(self._held.values()) if running.stubborn]

    def _press(self, running: Running, now: float) -> None:
        running.press(self._ladder, self._backing, now, stubborn=STUBBORN)

    def _serve(self) -> None:
        while True:
            running = self._waiting.get()
            if running is None:
                return
            began = clock()
            try:
                verdict = self._do(running, began)
            except BaseException as error:  # noqa: BLE001 - neither thread nor job must be lost
                verdict = mishap(error)
            self._ended.append((running.job, verdict, clock() - began))
            if not self._delivering:
                self._delivering = True
                try:
                    self._loop.call_soon_threadsafe(self._deliver)
                except RuntimeError:  # the event loop is closed: the process is about to end
                    return

    def _do(self, running: Running, began: float) -> Verdict:
        job, stop = running.job, running.stop
        running.deadline = deadline(job, began)
        current.set(running)
        try:
            verdict = None if stop.cause is not None else self._perform(job, stop)
        except BaseException as error:  # noqa: BLE001 - whatever goes wrong is this job's end
            verdict = mishap(error)
        running.over = True
        end_if_child()
        if verdict is None:
            verdict = interrupted(job, stop)
        return verdict if running.tail is None else with_output(verdict, running.tail)

    def _deliver(self) -> None:
        # The flag first: what is appended from now on schedules another delivery.
        self._delivering = False
        while self._ended:
            job, verdict, seconds = self._ended.popleft()
            del self._held[job.lease]
            self._report(job, verdict, seconds)


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
            return left(handler, job, stop, error)

    return perform
