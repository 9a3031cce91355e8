"""What runs under a worker by the database's account, held against what the process knows."""

import random
from collections.abc import Sequence

from pgq.calls import jobs as calls
from pgq.errors import Conflict, Unavailable
from pgq.model import ClaimedJob, HandedBack
from pgq.runner.interrupt import Interrupt, clock
from pgq.worker import log
from pgq.worker.lane import Lane, Take
from pgq.worker.link import Link

EVERY = 60.0
"""Seconds between two looks."""


class Reconciliation:
    """Compares the two accounts of one worker; used by the claim loop, between its claims."""

    def __init__(self, link: Link, lanes: Sequence[Lane], held: set[int], *, take: Take) -> None:
        self._link = link
        self._lanes = lanes
        self._held = held
        self._take = take
        self._next_at = clock() + EVERY
        self._strange: set[int] = set()
        """Leases that the last look found and this process did not know."""

    async def give_back_unheard(self, worker_id: int) -> None:
        """Hand back what was claimed by calls whose replies were lost."""
        for job in self._unknown(await self._running(worker_id)):
            self._hand_back(job)

    async def look(self, worker_id: int) -> None:
        """Once a minute: hand back what does not run here; stop what others took away."""
        if clock() < self._next_at:
            return
        self._next_at = clock() + EVERY * random.uniform(0.8, 1.2)
        try:
            running = await self._running(worker_id)
        except (Unavailable, Conflict):
            return
        self._stop_taken(running)
        unknown = self._unknown(running)
        for job in unknown:
            # One look is not enough to tell: an end may be written while it looks.
            if job.lease in self._strange:
                log.warning("a job that does not run here is handed back", job=job.id)
                self._hand_back(job)
        self._strange = {job.lease for job in unknown}

    async def _running(self, worker_id: int) -> list[ClaimedJob]:
        queues = self._lanes[0].places.queues()
        return await self._link.run_once(calls.running(worker_id, queues=queues))

    def _unknown(self, running: Sequence[ClaimedJob]) -> list[ClaimedJob]:
        return [job for job in running if job.lease not in self._held]

    def _hand_back(self, job: ClaimedJob) -> None:
        self._held.add(job.lease)
        self._take(job, HandedBack())

    def _stop_taken(self, running: Sequence[ClaimedJob]) -> None:
        """An operator may have taken a job by force, which then runs elsewhere too."""
        ids = {job.id for job in running}
        for lane in self._lanes:
            taken = [job.id for job in lane.runner.started() if job.id not in ids]
            if taken:
                log.warning("jobs that others took away are stopped", jobs=taken)
                lane.runner.ask(Interrupt.LOST, taken)
