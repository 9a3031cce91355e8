"""A worker from its start to its end, and how it stops.

The first signal drains: nothing more is claimed, what runs may finish (up to the grace). The
second hands running jobs back, uncharged. The third ends the process at once.
"""

import asyncio
import os
import signal
import socket
from importlib.metadata import PackageNotFoundError, version

from pgq import db
from pgq.calls import jobs as job_calls
from pgq.calls import workers as calls
from pgq.errors import PgqError, WorkerDead
from pgq.model import ClaimedJob, HandedBack, Verdict
from pgq.runner import Backing
from pgq.runner.interrupt import Interrupt, clock
from pgq.runner.verdict import describe, trace
from pgq.worker import log
from pgq.worker.claim import ClaimLoop
from pgq.worker.crew import Crew, make_crew
from pgq.worker.finish import FinishLoop
from pgq.worker.heartbeat import Hears, Heartbeat
from pgq.worker.link import Link
from pgq.worker.options import Options

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TICK = 0.1
"""Seconds between two looks at the timeouts of running jobs."""

STOPPING = 7.0
"""Seconds that jobs asked to stop have for it, before they are handed back as they are."""

LAST_CLAIM = 2.0
"""Seconds for the answer to the claim under way, of a worker that was told to hurry."""

FAREWELL = 10.0
"""Seconds for the last writes of a worker that was told to hurry."""

DRAIN_POLL = 0.05


def run(options: Options) -> int:
    """Work until told to stop; gives the exit code.

    0 after a drain or one signal, 128+n after a second signal n, 1 when the worker was declared
    dead. Raises Unavailable or SchemaMismatch when it cannot start.
    """
    log.configure(style=options.log_format, level=options.log_level)
    return asyncio.run(_work(options))


async def _work(options: Options) -> int:
    return await Worker(options).run()


class Worker:
    """One worker process; made inside its event loop."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._id = 0
        self._exit_code = 0
        self._dead = False
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._held: set[int] = set()
        self._doomed: asyncio.Queue[ClaimedJob] = asyncio.Queue()
        """Attempts whose queries are to be cancelled."""
        self._heartbeat = Heartbeat(
            options.dsn, Hears(self._on_wake, self._on_asked, self._on_dead)
        )
        self._finishing = FinishLoop(Link(options.dsn, "finish"), self._held)
        backing = Backing(
            options.dsn, self._heartbeat.note_progress, self._cancel_queries, self._complain
        )
        self._crew: Crew = make_crew(options, self._report, backing)
        poll = options.poll.total_seconds()
        self._claiming = ClaimLoop(
            Link(options.dsn, "claim"),
            self._crew.lanes,
            take=self._finishing.report,
            held=self._held,
            poll=min(poll, DRAIN_POLL) if options.drain else poll,
            drain=options.drain,
        )

    def __repr__(self) -> str:
        queues = ",".join(self._options.served_queues)
        state = "draining" if self._stop.is_set() else "working"
        return f"<Worker w-{self._id} {queues} {len(self._held)} held, {state}>"

    async def run(self) -> int:
        """Register, work, stop."""
        for number in SIGNALS:
            self._loop.add_signal_handler(number, self._on_signal, number)
        try:
            await asyncio.to_thread(self._register)
        except BaseException:
            self._heartbeat.stop()
            self._crew.close()
            raise
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
            self._exit_code = 1
        finally:
            await self._farewell()
        log.info("worker stopped", worker=self._name, **self._finishing.counts)
        return self._exit_code

    @property
    def _name(self) -> str:
        return f"w-{self._id}"

    def _register(self) -> None:
        options = self._options
        lock_key = self._heartbeat.connect()
        conn = self._heartbeat.connection
        db.check_schema(conn)
        if options.app is not None:
            handlers = [options.app.handlers[kind] for kind in options.served_kinds or ()]
            db.run(conn, calls.declare_kinds([handler.defaults for handler in handlers]))
        self._id = db.run(
            conn,
            calls.register(
                host=socket.gethostname(),
                pid=os.getpid(),
                version=_version(),
                queues=options.served_queues,
                kinds=options.served_kinds,
                concurrency=self._crew.concurrency,
                lock_key=lock_key,
            ),
        )
        self._heartbeat.start(self._id)
        log.info(
            "worker started",
            worker=self._name,
            queues=",".join(options.served_queues),
            kinds=",".join(options.served_kinds or ["any"]),
            concurrency=self._crew.concurrency,
            database=db.describe(options.dsn),
        )
        if self._heartbeat.pooled:
            log.warning(
                "a pooler is between the worker and the database: it polls, and its death shows "
                "only after the visibility timeout"
            )

    async def _supervise(self) -> None:
        """Run the loops until the end; if one fails, all do."""
        async with asyncio.TaskGroup() as group:
            writer = group.create_task(self._finishing.run(self._id), name="finish")
            ticker = group.create_task(self._tick(), name="timeouts")
            claimer = group.create_task(self._claim(), name="claim")
            drain = group.create_task(self._drain(), name="drain")
            canceller = group.create_task(self._cancel_doomed(), name="cancel queries")
            await self._stop.wait()
            await self._wind_down(claimer)
            for task in (writer, ticker, drain, canceller):
                task.cancel()

    async def _claim(self) -> None:
        try:
            await self._claiming.run(self._id, pooled=self._heartbeat.pooled)
        except WorkerDead:  # heard here before the heartbeat heard it
            self._die()
        except PgqError as error:
            log.error("worker cannot go on", worker=self._name, error=str(error))
            self._exit_code = 1
            self._stop.set()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            now = clock()
            for lane in self._crew.lanes:
                lane.runner.tick(now)

    async def _cancel_doomed(self) -> None:
        while True:
            job = await self._doomed.get()
            try:
                cancelled = await self._finishing.link.run_once(job_calls.cancel_queries(job))
            except PgqError as error:
                log.warning("queries not cancelled", job=job.id, error=str(error))
            else:
                if cancelled:
                    log.info("queries cancelled", job=job.id, queries=cancelled)

    async def _drain(self) -> None:
        await self._claiming.drained.wait()
        self._stop.set()

    async def _wind_down(self, claimer: asyncio.Task[None]) -> None:
        """Stop claiming, let jobs end, write what became of them."""
        self._heartbeat.draining = True
        self._claiming.stop()
        await self._unless_hurried(claimer, LAST_CLAIM)
        for lane in self._crew.lanes:
            for job in lane.runner.withdraw():
                self._finishing.report(job, HandedBack())
        grace = self._options.grace
        if not await self._idle(None if grace is None else grace.total_seconds()):
            for lane in self._crew.lanes:
                lane.runner.ask(Interrupt.HAND_BACK)
            self._hurry.clear()
            if not await self._idle(STOPPING):
                self._abandon()
        if self._exit_code:
            self._hurry.set()
        flushed = asyncio.create_task(self._finishing.flushed())
        if not await self._unless_hurried(flushed, FAREWELL):
            log.error("outcomes not written; these jobs run again", jobs=len(self._held))

    async def _unless_hurried(self, task: asyncio.Task[None], seconds: float) -> bool:
        """Wait for a task until a signal says hurry, then so many seconds more; whether it ended.

        Without the database it may never end.
        """
        hurry = asyncio.create_task(self._hurry.wait())
        await asyncio.wait({task, hurry}, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        ended, _ = await asyncio.wait({task}, timeout=seconds)
        task.cancel()
        return bool(ended)

    async def _idle(self, seconds: float | None) -> bool:
        """Wait until nothing runs: false when the time is over or a signal says hurry."""
        until = None if seconds is None else clock() + seconds
        while self._crew.busy:
            if self._hurry.is_set() or (until is not None and clock() >= until):
                return False
            await asyncio.sleep(0.02)
        return True

    def _abandon(self) -> None:
        """Hand back what cannot be stopped (threads): they end with the process, now."""
        for lane in self._crew.lanes:
            for job in lane.runner.abandon():
                log.warning("handed back while it still ran", job=job.id, kind=job.kind)
                self._finishing.report(job, HandedBack())

    async def _farewell(self) -> None:
        await asyncio.to_thread(self._heartbeat.stop)
        try:
            async with asyncio.timeout(FAREWELL):
                await self._finishing.link.run_once(calls.stop(self._id))
        except (PgqError, TimeoutError) as error:
            log.warning("farewell not written", worker=self._name, error=str(error))
        await self._claiming.link.close()
        await self._finishing.link.close()
        self._crew.close()

    def _report(self, job: ClaimedJob, verdict: Verdict) -> None:
        self._finishing.report(job, verdict)
        self._claiming.made_room()

    def _on_signal(self, number: int) -> None:
        name = signal.Signals(number).name
        if not self._stop.is_set():
            log.info("draining: the next signal hands running jobs back", signal=name)
            self._stop.set()
        elif not self._exit_code:
            log.info("handing running jobs back: the next signal ends at once", signal=name)
            self._exit_code = 128 + number
            self._hurry.set()
        else:
            log.warning("ended at once; running jobs are reaped by others", signal=name)
            os._exit(128 + number)

    def _on_wake(self) -> None:
        self._loop.call_soon_threadsafe(self._claiming.wake)

    def _on_asked(self, cause: Interrupt, job_ids: list[int]) -> None:
        for lane in self._crew.lanes:
            self._loop.call_soon_threadsafe(lane.runner.ask, cause, job_ids)

    def _cancel_queries(self, job: ClaimedJob) -> None:
        self._loop.call_soon_threadsafe(self._doomed.put_nowait, job)

    @staticmethod
    def _complain(job: ClaimedJob, what: str) -> None:
        log.warning(what, job=job.id, kind=job.kind)

    def _on_dead(self) -> None:
        self._loop.call_soon_threadsafe(self._die)

    def _die(self) -> None:
        if self._dead:
            return
        self._dead = True
        log.error("declared dead by others: stopping all jobs, which run elsewhere now")
        self._exit_code = 1
        self._stop.set()
        self._hurry.set()


def _version() -> str:
    try:
        return version("pgq-toolkit")
    except PackageNotFoundError:
        return "unknown"
