"""A worker from its start to its end: its loops, and what they tell one another."""

import asyncio
import contextlib
import random

from pgq.calls import Call
from pgq.calls import workers as calls
from pgq.errors import Conflict, ConnectionLost, PgqError, Unavailable, WorkerDead
from pgq.model import ClaimedJob, Verdict
from pgq.runner import Backing
from pgq.runner.interrupt import Interrupt, clock
from pgq.runner.verdict import describe, trace
from pgq.worker import log
from pgq.worker.board import Board
from pgq.worker.claim import ClaimLoop
from pgq.worker.closing import FAREWELL, LAST_WORD, Closing
from pgq.worker.crew import Crew, make_crew
from pgq.worker.ending import Ending
from pgq.worker.finish import FinishLoop
from pgq.worker.health import Health
from pgq.worker.heartbeat import Hears, Heartbeat
from pgq.worker.link import LONGEST_WAIT, Link
from pgq.worker.options import Options
from pgq.worker.queries import Queries
from pgq.worker.registration import register
from pgq.worker.surrender import Surrender

TICK = 0.1
"""Seconds between two looks at the timeouts of running jobs."""

ELSEWHERE = 0.3
"""Seconds for a beat on the connection of another loop."""

DRAIN_POLL = 0.05

CANCELLED = "a handler has cancelled all tasks of the event loop: it may cancel its own alone"


class Worker:
    """One worker; made inside its event loop."""

    def __init__(self, options: Options, ending: Ending) -> None:
        self._options = options
        self._ending = ending
        self._loop = asyncio.get_running_loop()
        self._id = 0
        self._dead = False
        self._held: set[int] = set()
        board = Board(self._held)
        self._heartbeat = Heartbeat(
            options.dsn,
            Hears(
                woken=self._on_wake,
                asked=self._on_asked,
                dead=self._on_dead,
                broken=self._on_broken,
                forfeit=self._on_forfeit,
                trouble=self._trouble,
                elsewhere=self._beat_elsewhere,
            ),
            board,
        )
        self._finishing = FinishLoop(Link(options.dsn, "finish"), self._held)
        self._queries = Queries(self._finishing.link)
        backing = Backing(options.dsn, board.note, self._queries.cancel, self._complain)
        self._crew: Crew = make_crew(options, self._report, backing)
        poll = options.poll.total_seconds()
        self._claiming = ClaimLoop(
            Link(options.dsn, "claim"),
            self._crew.lanes,
            take=self._finishing.report,
            held=self._held,
            refused=lambda: self._finishing.refused,
            poll=min(poll, DRAIN_POLL) if options.drain else poll,
            drain=options.drain,
        )
        self._closing = Closing(
            ending, self._crew, self._claiming, self._finishing, grace=options.grace
        )
        self._surrender = Surrender(self._crew, self._closing.withdraw)
        self._health = Health(self._crew, self._claiming, self._finishing, poll=poll)

    def __repr__(self) -> str:
        queues = ",".join(self._options.served_queues)
        state = "draining" if self._ending.stop.is_set() else "working"
        return f"<Worker w-{self._id} {queues} {len(self._held)} held, {state}>"

    async def run(self, *, patient: bool = False) -> bool:
        """Register, work, stop; whether it was declared dead.

        `patient`: wait for the database if it cannot be reached.
        """
        try:
            await self._start(patient=patient)
        finally:
            if not self._id:
                self._heartbeat.stop()
                self._crew.close()
        if not self._id:
            return False
        try:
            await self._supervise()
        except* Exception as errors:  # noqa: BLE001 - said, and the exit code tells
            for error in errors.exceptions:
                log.error(
                    "worker cannot go on",
                    worker=self._name,
                    error=describe(error),
                    traceback=None if isinstance(error, PgqError) else trace(error),
                )
            self._ending.fail()
        except* asyncio.CancelledError:  # nobody of ours cancels the worker
            log.error("worker cannot go on", worker=self._name, error=CANCELLED)
            self._ending.fail()
        finally:
            await self._farewell()
        log.info("worker stopped", worker=self._name, **self._finishing.counts)
        return self._dead

    @property
    def _name(self) -> str:
        return f"w-{self._id}"

    async def _start(self, *, patient: bool) -> None:
        """Register, unless told to stop before the database could be reached."""
        said = False
        while not (patient and self._ending.stop.is_set()):
            try:
                self._id = await asyncio.to_thread(
                    register, self._options, self._heartbeat, concurrency=self._crew.concurrency
                )
            except (Unavailable, Conflict) as error:
                if not patient:
                    raise
                if not said:
                    log.warning("database lost", loop="start", error=str(error))
                    said = True
                await self._ending.pause(LONGEST_WAIT * random.uniform(0.5, 1.0))
            else:
                return

    async def _supervise(self) -> None:
        """Run the loops until the end; if one fails, all do."""
        async with asyncio.TaskGroup() as group:
            others = [
                group.create_task(self._finishing.run(self._id), name="finish"),
                group.create_task(self._tick(), name="timeouts"),
                group.create_task(self._drain(), name="drain"),
                group.create_task(self._queries.run(), name="cancel queries"),
            ]
            claimer = group.create_task(self._claim(), name="claim")
            await self._ending.stop.wait()
            self._heartbeat.draining = True
            await self._closing.run(claimer)
            await self._queries.rest()
            for task in others:
                task.cancel()

    async def _claim(self) -> None:
        try:
            await self._claiming.run(self._id, pooled=self._heartbeat.pooled)
        except WorkerDead:  # heard here before the heartbeat heard it
            self._die()
        except PgqError as error:
            log.error("worker cannot go on", worker=self._name, error=str(error))
            self._ending.fail()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self._ending.insist()
            self._health.ticked_at = now = clock()
            self._crew.tick(now)

    async def _drain(self) -> None:
        await self._claiming.drained.wait()
        self._ending.stop.set()

    async def _farewell(self) -> None:
        abandoned = self._ending.abandoned
        patience = LAST_WORD if abandoned else FAREWELL
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await asyncio.to_thread(self._heartbeat.stop)
        # With outcomes unwritten it is better found dead: others give the jobs back within seconds.
        if not self._held:
            await self._say_farewell(patience)
        if abandoned:
            return
        await self._claiming.link.close()
        await self._finishing.link.close()
        self._crew.close()

    async def _say_farewell(self, patience: float) -> None:
        try:
            async with asyncio.timeout(patience):
                try:
                    await self._finishing.link.run_once(calls.stop(self._id))
                except ConnectionLost:  # perhaps long ago, and nobody looked
                    await self._finishing.link.run_once(calls.stop(self._id))
        except (PgqError, TimeoutError) as error:
            reason = str(error) or f"no answer from the database for {patience:g} s"
            log.warning("farewell not written", worker=self._name, error=reason)

    def _report(self, job: ClaimedJob, verdict: Verdict) -> None:
        self._surrender.ended(job)
        self._finishing.report(job, verdict)
        self._claiming.made_room()

    def _die(
        self, why: str = "declared dead by others: stopping all jobs, which run elsewhere now"
    ) -> None:
        """This worker is no more: its jobs run elsewhere now, or will."""
        if self._dead:
            return
        self._dead = True
        log.error(why)
        self._surrender.give_up()
        self._ending.at_once()

    # What follows is called from the heartbeat's thread, and by runners from any.

    def _on_wake(self) -> None:
        self._loop.call_soon_threadsafe(self._claiming.wake)

    def _on_asked(self, cause: Interrupt, job_ids: list[int]) -> None:
        ids = frozenset(job_ids)

        def wanted(job: ClaimedJob) -> bool:
            return job.id in ids

        self._crew.ask_ahead(cause, wanted)
        self._loop.call_soon_threadsafe(self._crew.ask, cause, wanted)

    def _on_dead(self) -> None:
        self._surrender.demand(self._die)

    def _on_broken(self, reason: str) -> None:
        log.error("the heartbeat failed", error=reason)
        self._surrender.demand(lambda: self._die("it cannot beat: stopping all jobs"))

    def _on_forfeit(self, reason: str) -> None:
        log.error("stopping all jobs: others may run them soon", reason=reason)
        self._surrender.demand(self._surrender.give_up)

    def _trouble(self) -> str | None:
        return self._health.trouble()

    def _beat_elsewhere(self, call: Call[calls.Beat]) -> calls.Beat:
        """Beat over the connections of the other loops, if one is open and answers."""
        error: Exception = Unavailable("no connection is open")
        for link in (self._finishing.link, self._claiming.link):
            beat = asyncio.run_coroutine_threadsafe(link.run_if_open(call), self._loop)
            try:
                return beat.result(ELSEWHERE)
            except (PgqError, TimeoutError) as failed:
                beat.cancel()
                error = failed
        raise Unavailable(str(error))

    @staticmethod
    def _complain(job: ClaimedJob, what: str) -> None:
        log.warning(what, job=job.id, kind=job.kind)
