"""Letting go of jobs that others run, or may run soon: they end now, or the process does.

A worker that was declared dead, or that cannot beat while others may soon declare it dead, must not
go on beside the next attempt of its jobs. A thread, or a handler that blocks the event loop, cannot
be stopped: it ends with the process.
"""

import asyncio
import os
import threading
from collections.abc import Callable

from pgq.model import ClaimedJob
from pgq.runner.interrupt import Interrupt
from pgq.worker import log
from pgq.worker.crew import Crew

LET_GO = 0.7
"""Seconds in which the jobs must end.

Together with the silence that comes before, less than the 4 seconds after which others run them.
"""


LAST_WORDS = 0.1
"""Seconds for the log to be written before the process ends."""


class Surrender:
    """Ends what this crew runs; made inside the event loop."""

    def __init__(self, crew: Crew, withdraw: Callable[[], None]) -> None:
        """`withdraw` hands back what has not started."""
        self._crew = crew
        self._withdraw = withdraw
        self._loop = asyncio.get_running_loop()
        self._running: set[int] = set()
        """Leases of the jobs that were told to end and have not."""
        self._heard = threading.Event()

    def ended(self, job: ClaimedJob) -> None:
        """This job runs no more."""
        self._running.discard(job.lease)

    def give_up(self) -> None:
        """Tell all jobs to end; the process ends soon if they do not. On the event loop."""
        self._withdraw()
        told = frozenset(job.lease for job in self._crew.started())
        self._running.update(told)
        self._crew.ask(Interrupt.LOST)
        # Not by the event loop: a handler may block it while it cleans up.
        check = threading.Timer(LET_GO, self._check, [told])
        check.daemon = True
        try:
            check.start()
        except RuntimeError:  # no thread can be had now
            self._loop.call_later(LET_GO, self._check, told)

    def _check(self, told: frozenset[int]) -> None:
        left = self._running & told
        if left:
            end_process(f"{len(left)} jobs do not stop")

    def demand(self, tell: Callable[[], None]) -> None:
        """Have `tell`, which gives up, called on the event loop; for another thread.

        The process ends if a handler keeps the event loop from hearing it.
        """
        self._heard.clear()
        # Heard even if `tell` has nothing more to do: the other loops may have heard it first.
        self._loop.call_soon_threadsafe(self._heard.set)
        self._loop.call_soon_threadsafe(tell)
        if not self._heard.wait(LET_GO):
            end_process("a handler blocks the event loop")


def end_process(why: str) -> None:
    """End at once."""
    log.error("the process ends, so that its jobs do", reason=why)
    log.flush(LAST_WORDS)
    os._exit(1)
