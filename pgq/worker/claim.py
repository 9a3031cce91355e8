"""The claim loop: looks for due jobs whenever a lane has room, and rests when there is nothing.

An idle worker says that it waits, commits, and looks once more; an enqueue that begins later wakes
it. One that began earlier and commits later does not, so it looks again after 20, 40, 80 ... ms, up
to the poll. It stays "waiting" through short bursts, and takes it back only after a second of
steady work, since each change is a write.
"""

import asyncio
import random
from collections.abc import Callable, Sequence

from pgq.calls import Call
from pgq.calls import jobs as calls
from pgq.calls.workers import outwait_claims, set_waiting
from pgq.errors import (
    Conflict,
    ConnectionLost,
    PgqError,
    Refused,
    SchemaMismatch,
    Unavailable,
    WorkerDead,
)
from pgq.model import ClaimedJob, HandedBack
from pgq.runner.interrupt import clock
from pgq.worker import log
from pgq.worker.lane import Lane, Take
from pgq.worker.link import FIRST_WAIT, Link, next_wait
from pgq.worker.reconcile import Reconciliation

FIRST_LOOK = 0.02
STEADY = 1.0
"""Seconds of work without a pause after which the worker no longer says that it waits."""
FULL = 0.1
"""The same, while every slot is taken: to wake this worker would be in vain."""
FULL_EVERY = 1.0
FULL_SHARE = 20
"""A full look waits for this many times what the last one took: at most 5 % of the time."""


SINGLY = 10.0
"""Seconds for which jobs are claimed one by one after the database refused a claim."""


class ClaimLoop:
    """Claims for the lanes of one worker."""

    def __init__(
        self,
        link: Link,
        lanes: Sequence[Lane],
        *,
        take: Take,
        held: set[int],
        refused: Callable[[], int],
        poll: float,
        drain: bool,
    ) -> None:
        """`held`: leases of the jobs this process knows of, until their end is written.

        `refused`: for how many of them the database refuses that.
        """
        self.link = link
        self._lanes = lanes
        self._take = take
        self._held = held
        self._refused = refused
        self._poll = poll
        self._drain = drain
        self._worker_id = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._crowded: Sequence[Lane] = ()
        """The lanes that were not looked for because they are full, while others were."""
        self._stopping = False
        self._waiting = False
        self._woken = False
        self._working_since: float | None = None
        self._reconciliation = Reconciliation(link, lanes, held, take=take)
        self.turned_at = clock()
        """When the loop last came round, which it does every few seconds even when all is full."""
        self.drained = asyncio.Event()
        """Set when full looks found nothing due and nothing is held; for --drain."""

    def wake(self) -> None:
        """Jobs may be due: look."""
        self._woken = True
        self._news.set()

    def made_room(self) -> None:
        """A job ended: there may be room for another."""
        self._room.set()
        if self._crowded and any(lane.room() for lane in self._crowded):
            self._news.set()

    @property
    def stopped(self) -> bool:
        """Whether stop() was called."""
        return self._stopping

    def stop(self) -> None:
        """Claim nothing more; run() ends soon, when the claim under way is answered."""
        self._stopping = True
        self._news.set()
        self._room.set()

    async def run(self, worker_id: int, *, pooled: bool) -> None:
        """Look and claim for this worker until stop(); `pooled`: it cannot be woken."""
        self._worker_id = worker_id
        rest = FIRST_LOOK
        again = False
        while not self._stopping:
            self.turned_at = clock()
            self._news.clear()
            self._room.clear()
            self._hand_back_stale()
            await self._reconciliation.look(self._worker_id)
            woken, self._woken = self._woken, False
            lanes = [lane for lane in self._lanes if lane.room() > 0]
            self._crowded = [lane for lane in self._lanes if lanes and lane not in lanes]
            if not lanes:
                await self._full_house()
                continue
            # While one lane is busy, another that gave nothing is looked at now and then.
            busy = lanes if woken or again else [lane for lane in lanes if not lane.rests(clock())]
            quiet = self._all_ended  # before the look: what ends during it may have enqueued more
            found, filled = await self._look(busy or lanes, woken=woken)
            again = not found and 0 < len(busy) < len(lanes)
            if again:
                continue  # rest only after a look at all: what ended may have enqueued for another
            if filled:
                await self._steady()
                continue
            self._working_since = None
            rest = FIRST_LOOK if found or woken else min(rest * 2, self._poll)
            if not self._waiting and not pooled and await self._say(waiting=True):
                again = True
                continue  # look once more, for what was enqueued before this was committed
            if quiet and not found:
                self._note_drained()
            await self._pause(self._news, rest * random.uniform(0.8, 1.2))

    async def _look(self, lanes: Sequence[Lane], *, woken: bool) -> tuple[bool, bool]:
        """Claim for each lane: (something was found, a lane got all it asked for)."""
        found = filled = False
        for lane in lanes:
            room = lane.room()
            jobs = await self._claim(lane, room, full=clock() >= lane.full_at, idle=lane.idle)
            lane.looked(clock(), found=bool(jobs))
            if not jobs and woken and not lane.empty and not self._just_full(lane):
                jobs = await self._claim(lane, room, full=True)
            found = found or bool(jobs)
            filled = filled or len(jobs) >= room
        return found, filled

    def _just_full(self, lane: Lane) -> bool:
        """Whether a full look would come before its share of the time."""
        return clock() < lane.full_at - FULL_EVERY

    async def _claim(
        self, lane: Lane, room: int, *, full: bool, idle: bool = False
    ) -> list[ClaimedJob]:
        """Claim for a lane; a full look of an idle one takes turns with those of others."""
        turn = full and idle and not self._drain
        places = lane.places.next() if turn or not full else None
        full = places is None
        began = clock()
        look = await self._send(self._call(lane, room, places=places, turn=turn), lane, room)
        if look is None:
            return []
        if full or turn:
            took = clock() - began
            lane.full_at = clock() + max(FULL_EVERY, FULL_SHARE * took)
        if turn and look.jobs:
            lane.full_at = 0.0  # behind the places there may be more
        lane.empty = full and not look.jobs
        lane.places.note(look, full=full, limit=room)
        if full:
            lane.places.rotate()
        if look.jobs:
            self._held.update(job.lease for job in look.jobs)
            for job in lane.take(look.jobs):
                self._take(job, HandedBack())
        return look.jobs

    async def _send(self, call: Call[calls.Look], lane: Lane, room: int) -> calls.Look | None:
        """Claim; if the reply is lost, give back what was claimed unheard, and claim again.

        One by one if the database refuses, which a single job can be the cause of. None if the
        worker stops meanwhile.
        """
        wait = FIRST_WAIT
        lost = unheard = False
        while True:
            try:
                if unheard:
                    await self._give_back_unheard()
                    unheard = False
                if lost and self._stopping:
                    return None
                look = await self.link.run_once(call)
            except (SchemaMismatch, Refused, WorkerDead):
                raise
            except PgqError as error:
                if not isinstance(error, Unavailable | Conflict):
                    call = self._singly(lane, room, error)
                lost = True
                unheard = unheard or isinstance(error, ConnectionLost)
                if self._stopping and not unheard:
                    return None
                await asyncio.sleep(wait * random.uniform(0.5, 1.0))
                wait = next_wait(wait)
            else:
                return look

    def _singly(self, lane: Lane, room: int, error: PgqError) -> Call[calls.Look]:
        """Claim one by one, now and for a while; said once in that time."""
        if clock() >= lane.singly_until:
            log.error("claim refused: trying the jobs one by one", error=str(error))
            lane.singly_until = clock() + SINGLY
        return self._call(lane, room, places=None)

    def _call(
        self, lane: Lane, room: int, *, places: Sequence[calls.Place] | None, turn: bool = False
    ) -> Call[calls.Look]:
        singly = clock() < lane.singly_until
        return calls.claim(
            self._worker_id,
            queues=lane.places.queues(),
            limit=room,
            kinds=lane.kinds,
            places=None if singly else places,
            turn=turn,
            singly=singly,
        )

    async def _give_back_unheard(self) -> None:
        if not await self.link.run_once(outwait_claims(self._worker_id)):
            raise Conflict("the claim whose reply was lost is still under way")
        await self._reconciliation.give_back_unheard(self._worker_id)

    def _hand_back_stale(self) -> None:
        for lane in self._lanes:
            for job in lane.stale():
                self._take(job, HandedBack())

    async def _full_house(self) -> None:
        """Wait until a lane has room."""
        wait = FULL if self._waiting else STEADY
        if not await self._pause(self._room, wait) and self._waiting:
            await self._say(waiting=False)

    async def _steady(self) -> None:
        now = clock()
        if self._working_since is None:
            self._working_since = now
        elif self._waiting and now - self._working_since > STEADY:
            await self._say(waiting=False)

    async def _say(self, *, waiting: bool) -> bool:
        """Say so if the database can be reached now; the next claim will speak of it if not."""
        try:
            await self.link.run_once(set_waiting(self._worker_id, waiting=waiting))
        except (Unavailable, Conflict):
            return False
        self._waiting = waiting
        return True

    @staticmethod
    async def _pause(event: asyncio.Event, seconds: float) -> bool:
        """Wait for the event, at most so long; whether it came."""
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return False
        return True

    @property
    def _all_ended(self) -> bool:
        """Whether nothing is held whose end can be written."""
        return len(self._held) <= self._refused()

    def _note_drained(self) -> None:
        """For --drain: all is done if full looks found nothing, and nothing is held."""
        if not self._drain or not self._all_ended:
            return
        if all(lane.empty for lane in self._lanes):
            self.drained.set()
        for lane in self._lanes:
            lane.full_at = 0.0
