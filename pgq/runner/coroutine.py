"""Runs `async def` handlers on the event loop.

A task is made for each slot, not for each job: a slot takes job after job, so that a handler which
never waits costs no task, and one which waits is in a task of its own, as asyncio.timeout() and
cancellation need. A new slot is started only when the others are waiting inside their handlers.

To ask a handler to stop is to cancel its task. One that catches CancelledError may clean up, and
may finish: what it returns counts, since a task that returned is not cancelled. One that goes on
keeps its slot and is cancelled again further up the ladder. Nothing can be done to a handler that
blocks the event loop: it is cancelled at its next `await`.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Iterable, Mapping

from pgq.model import ClaimedJob, Verdict
from pgq.registry import Handler
from pgq.registry.app import Isolation
from pgq.runner import Backing, Report, Wanted, view
from pgq.runner.executor import outlast
from pgq.runner.fork import end_if_child
from pgq.runner.interrupt import Interrupt, Stop, clock, deadline, interrupted
from pgq.runner.ladder import LADDERS
from pgq.runner.output import with_output
from pgq.runner.records import current
from pgq.runner.running import Running
from pgq.runner.verdict import left, mishap, returned

SLICE = 0.002
"""Seconds that a slot runs jobs before it lets the event loop do other things."""

STUBBORN = "does not stop: it goes on after CancelledError, and keeps its slot"


class CoroutineRunner:
    """A Runner for async handlers."""

    def __init__(
        self, handlers: Mapping[str, Handler], capacity: int, report: Report, *, backing: Backing
    ) -> None:
        self.capacity = capacity
        self._backing = backing
        self._handlers = handlers
        self._report = report
        self._waiting: deque[ClaimedJob] = deque()
        self._running: dict[int, Running] = {}
        """By lease: a job that an operator took back by force may come again beside itself."""
        self._slots: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        # Handlers must not see what another one set in a context variable.
        self._context = contextvars.copy_context()

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def submit(self, jobs: Iterable[ClaimedJob]) -> None:
        self._waiting.extend(jobs)
        self._fill()

    def withdraw(self) -> list[ClaimedJob]:
        jobs = list(self._waiting)
        self._waiting.clear()
        return jobs

    def ask(self, cause: Interrupt, wanted: Wanted | None = None) -> None:
        now = clock()
        for running in list(self._running.values()):
            if wanted is None or wanted(running.job):
                running.ask(cause, now)
                self._press(running, now)
        for job in list(self._waiting):
            if wanted is None or wanted(job):
                self._waiting.remove(job)
                stop = Stop()
                stop.ask(cause, now)
                self._report(job, interrupted(job, stop), 0.0)

    def ask_ahead(self, cause: Interrupt, wanted: Wanted) -> None:
        pass

    def blocking(self) -> ClaimedJob | None:
        task = asyncio.current_task(self._loop)
        if task is None:
            return None
        of_task = (running for running in list(self._running.values()) if running.task is task)
        running = next(of_task, None)
        return None if running is None else running.job

    def tick(self, now: float) -> None:
        for running in list(self._running.values()):
            if running.deadline is not None and running.deadline <= now:
                running.ask(Interrupt.TIMEOUT, now)
            self._press(running, now)

    def started(self) -> list[ClaimedJob]:
        return [running.job for running in self._running.values()]

    def close(self) -> None:
        pass

    def stubborn(self) -> list[ClaimedJob]:
        return [running.job for running in list(self._running.values()) if running.stubborn]

    def _press(self, running: Running, now: float) -> None:
        running.press(LADDERS[Isolation.ASYNC], self._backing, now, stubborn=STUBBORN)

    def _fill(self) -> None:
        """Start one more slot if jobs wait; look again once it has run to its first wait."""
        if not self._waiting or len(self._slots) >= self.capacity:
            return
        loop = asyncio.get_running_loop()
        slot = loop.create_task(self._serve(), context=self._context.copy())
        self._slots.add(slot)
        slot.add_done_callback(self._slot_ended)
        loop.call_soon(self._fill)

    def _slot_ended(self, slot: asyncio.Task[None]) -> None:
        self._slots.discard(slot)
        self._fill()

    async def _serve(self) -> None:
        """Run job after job, until none waits or a handler left traces in the task."""
        task = asyncio.current_task()
        assert task is not None
        began = clock()
        pause_at = began + SLICE
        while self._waiting:
            job = self._waiting.popleft()
            running = Running(job)
            running.deadline = deadline(job, began)
            running.task = task
            self._running[job.lease] = running
            current.set(running)
            clean = contextvars.copy_context()
            try:
                verdict = await self._run(running)
                if running.tail is not None:
                    verdict = with_output(verdict, running.tail)
            except BaseException as error:  # noqa: BLE001 - neither slot nor job must be lost
                verdict = mishap(error)
            running.over = True
            del self._running[job.lease]
            end_if_child()
            now = clock()
            self._report(job, verdict, now - began)
            # A cancellation that this handler did not wait for would strike the next one.
            if task.cancelling() or _changed(clean):
                return
            began = now
            if now >= pause_at:
                await asyncio.sleep(0)
                began = clock()
                pause_at = began + SLICE

    async def _run(self, running: Running) -> Verdict:
        job, stop = running.job, running.stop
        handler = self._handlers[job.kind]
        try:
            arguments = handler.binding.arguments(job.payload)
            if handler.binding.job_parameter is not None:
                arguments[handler.binding.job_parameter] = view(job, stop.event, self._backing)
            return returned(await handler.function(**arguments))
        except BaseException as error:  # noqa: BLE001 - SystemExit too is only this job's end
            if stop.cause is not None:
                await outlast(running)
            return left(handler, job, stop, error)


def _changed(clean: contextvars.Context) -> bool:
    """Whether a handler has set a context variable, as far as its value can be compared."""
    try:
        return contextvars.copy_context() != clean
    except Exception:  # noqa: BLE001 - __eq__ is the application's code
        return True
