"""What runs under a worker by the database's account, held against what the process knows."""

import random
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

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
        for job in await self._running(worker_id):
            if job.lease not in self._held:
                self._hand_back(job)

    async def look(self, worker_id: int) -> None:
        """Once a minute: hand back what does not run here; stop what others took away."""
        if clock() < self._next_at:
            return
        self._next_at = clock() + EVERY * random.uniform(0.8, 1.2)
        try:
            leases = await self._link.run_once(calls.leases(worker_id, queues=self._queues))
            self._stop_taken(leases)
            strange = leases - self._held
            # One look is not enough to tell: an end may be written while it looks.
            if strange & self._strange:
                await self._hand_back_strange(worker_id, strange & self._strange)
        except (Unavailable, Conflict):
            return
        self._strange = strange

    @property
    def _queues(self) -> list[str]:
        return self._lanes[0].places.queues()

    async def _running(self, worker_id: int) -> list[ClaimedJob]:
        return await self._link.run_once(calls.running(worker_id, queues=self._queues))

    async def _hand_back_strange(self, worker_id: int, leases: AbstractSet[int]) -> None:
        for job in await self._running(worker_id):
            if job.lease in leases:
                log.warning("a job that does not run here is handed back", job=job.id)
                self._hand_back(job)

    def _hand_back(self, job: ClaimedJob) -> None:
        self._held.add(job.lease)
        self._take(job, HandedBack())

    def _stop_taken(self, leases: AbstractSet[int]) -> None:
        """An operator may have taken a job by force, which then runs elsewhere, or again here."""
        for lane in self._lanes:
            taken = [job.id for job in lane.runner.started() if job.lease not in leases]
            if taken:
                log.warning("jobs that others took away are stopped", jobs=taken)
                lane.runner.ask(Interrupt.LOST, lambda job: job.lease not in leases)
