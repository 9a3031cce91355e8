"""The end of a worker: it claims no more, lets jobs end, and writes what became of them."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from pgq.model import HandedBack
from pgq.runner.interrupt import Interrupt, clock
from pgq.runner.ladder import LONGEST
from pgq.worker import log
from pgq.worker.claim import ClaimLoop
from pgq.worker.crew import Crew
from pgq.worker.ending import Ending
from pgq.worker.finish import FinishLoop

STOPPING = LONGEST + 2.0
"""Seconds that jobs asked to stop have for it, before they are handed back as they are."""

LAST_CLAIM = 2.0
"""Seconds for the answer to the claim under way, of a worker that was told to hurry."""

FAREWELL = 10.0
"""Seconds for the last writes of a worker that was told to hurry."""

LAST_WORD = 0.5
"""The same, while jobs run on that were handed back: only the end of the process ends them."""


class Closing:
    """How one worker stops."""

    def __init__(
        self,
        ending: Ending,
        crew: Crew,
        claiming: ClaimLoop,
        finishing: FinishLoop,
        *,
        grace: timedelta | None,
    ) -> None:
        self._ending = ending
        self._crew = crew
        self._claiming = claiming
        self._finishing = finishing
        self._grace = grace

    async def run(self, claimer: asyncio.Task[None]) -> None:
        """Stop; `claimer` is the task of the claim loop.

        When the grace is over, or a signal says hurry, jobs are asked to end; that, the last claim
        and the last writes have bounds of their own, also without a database.
        """
        self._claiming.stop()
        late: asyncio.TimerHandle | None = None
        if self._grace is not None:
            loop = asyncio.get_running_loop()
            late = loop.call_later(self._grace.total_seconds(), self._end_grace)
        if self._crew.busy:
            await self._unless_hurried(claimer, LAST_CLAIM)
        else:  # the claim under way is all there is to wait for
            await asyncio.wait({claimer}, timeout=FAREWELL)
            claimer.cancel()
        self.withdraw()
        await self._let_end()
        flushed = asyncio.create_task(self._finishing.flushed())
        await self._unless_hurried(flushed, FAREWELL)
        if self._finishing.unwritten:
            log.error("outcomes not written; these jobs run again", jobs=self._finishing.unwritten)
        if self._finishing.refused:
            self._ending.fail()
        if late is not None:
            late.cancel()

    def _end_grace(self) -> None:
        what = "handing running jobs back" if self._crew.busy else "ending"
        log.info(f"the grace is over: {what}")
        self._ending.lose_patience()

    def withdraw(self) -> None:
        """Hand back what has not started."""
        for job in self._crew.withdraw():
            self._finishing.report(job, HandedBack())

    async def _let_end(self) -> None:
        hurry = self._ending.hurry
        if not await self._idle(hurry.is_set):
            self._crew.ask(Interrupt.HAND_BACK)
            # Whoever says hurry now says nothing new: what can be ended is handed back when it is.
            until = clock() + STOPPING
            if not await self._idle(lambda: clock() >= until):
                self._abandon()
        if self._ending.urgent:
            hurry.set()

    async def _idle(self, given_up: Callable[[], bool]) -> bool:
        """Wait until nothing runs, or it is given up; whether nothing runs."""
        while self._crew.busy:
            if given_up():
                return False
            await asyncio.sleep(0.02)
        return True

    def _abandon(self) -> None:
        """Hand back what cannot be stopped (threads): they end with the process, now."""
        for job in self._crew.started():
            log.warning("handed back while it still ran", job=job.id, kind=job.kind)
            self._finishing.report(job, HandedBack())
            self._ending.abandoned = True

    async def _unless_hurried(self, task: asyncio.Task[None], seconds: float) -> None:
        """Wait for a task until told to hurry, then so many seconds more.

        Without the database it may never end.
        """
        hurry = asyncio.create_task(self._ending.hurry.wait())
        await asyncio.wait({task, hurry}, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        ended, _ = await asyncio.wait({task}, timeout=seconds)
        if not ended:
            self._claiming.link.cut()
            self._finishing.link.cut()
        task.cancel()
