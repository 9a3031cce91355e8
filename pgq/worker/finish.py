"""The finish loop: writes verdicts as they come, in batches, again if the reply was lost.

A lone verdict is written at once; while one batch is being written the next one gathers.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from pgq.calls import jobs as calls
from pgq.calls.jobs import Finished, Settled
from pgq.calls.workers import session
from pgq.errors import PgqError
from pgq.model import Cancelled, ClaimedJob, Done, Failed, HandedBack, Snoozed, Verdict
from pgq.runner.interrupt import clock
from pgq.text import storable
from pgq.worker import log
from pgq.worker.link import Link

BATCH = 1000
BATCH_SIZE = 8_000_000
"""Characters of results after which a batch is cut."""

STUCK = 5.0
"""Seconds after which a refused outcome is tried again."""


class FinishLoop:
    """Gathers verdicts and writes them."""

    def __init__(self, link: Link, held: set[int]) -> None:
        """`held`: leases of jobs whose end is not written yet; taken out once it is."""
        self.link = link
        self._worker_id = 0
        self._held = held
        self._done: list[Finished] = []
        self._settled: list[Settled] = []
        self._stuck: list[tuple[ClaimedJob, Verdict]] = []
        """What the database refused whatever was tried."""
        self._again_at = 0.0
        """When that is tried again: it must not keep step with the jobs that end."""
        self._news = asyncio.Event()
        self._clear = asyncio.Event()
        self._clear.set()
        self.counts = {"done": 0, "attempts_not_done": 0, "leases_lost": 0}

    def report(self, job: ClaimedJob, verdict: Verdict) -> None:
        """Take a verdict to write."""
        if isinstance(verdict, Done):
            self._done.append((job, verdict))
        else:
            _log(job, verdict)
            self._settled.append((job, verdict))
        if not self._news.is_set():
            self._news.set()
            self._clear.clear()

    @property
    def unwritten(self) -> int:
        """How many jobs are held whose end is not written."""
        return len(self._held)

    @property
    def refused(self) -> int:
        """How many outcomes the database refuses whatever is tried."""
        return len(self._stuck)

    async def flushed(self) -> None:
        """Wait until everything reported so far is written, or was refused by the database."""
        await self._clear.wait()

    async def run(self, worker_id: int) -> None:
        """Write for this worker until cancelled; cancel it only when flushed() has returned."""
        self._worker_id = worker_id
        # Connected from the start: what a worker runs it must be able to write, also when the
        # server has no connection left for it later.
        await self.link.run(session())
        while True:
            await self._news_or_stuck()
            self._news.clear()
            await self._try_again()
            while self._done or self._settled:
                done, self._done = _cut(self._done)
                settled, self._settled = self._settled[:BATCH], self._settled[BATCH:]
                if done:
                    await self._write(done)
                if settled:
                    await self._write_settled(settled)
                self._held.difference_update(job.lease for job, _ in done)
                self._held.difference_update(job.lease for job, _ in settled)
                self._held.update(job.lease for job, _ in self._stuck)
            if not self._news.is_set():
                self._clear.set()

    async def _news_or_stuck(self) -> None:
        """Wait for verdicts; while the database refuses one, only for a while."""
        try:
            async with asyncio.timeout(STUCK if self._stuck else None):
                await self._news.wait()
        except TimeoutError:
            pass

    async def _try_again(self) -> None:
        """Write what was refused, a while after that."""
        if self._stuck and clock() >= self._again_at:
            again, self._stuck = self._stuck, []
            await self._one_by_one(again)

    async def _write(self, done: list[Finished]) -> None:
        try:
            lost = await self.link.run(calls.finish(self._worker_id, done))
        except PgqError as error:
            log.error("batch refused", jobs=len(done), error=str(error))
            await self._one_by_one(done)
            return
        self.counts["done"] += len(done) - len(lost)
        self._note_lost(lost)
        _log_written(done, lost)

    async def _write_settled(self, settled: list[Settled]) -> None:
        try:
            lost = await self.link.run(calls.settle(self._worker_id, settled))
        except PgqError as error:
            log.error("batch refused", jobs=len(settled), error=str(error))
            await self._one_by_one(settled)
            return
        self.counts["attempts_not_done"] += len(settled) - len(lost)
        self._note_lost(lost)
        _log_written(settled, lost)

    async def _one_by_one(self, batch: Sequence[tuple[ClaimedJob, Verdict]]) -> None:
        """Write each job by itself: the database refused a batch, and one of it may be why."""
        for job, verdict in batch:
            try:
                await self._write_one(job, verdict)
            except PgqError as refusal:
                await self._write_refused(job, verdict, refusal)

    async def _write_one(self, job: ClaimedJob, verdict: Verdict) -> None:
        if isinstance(verdict, Done):
            lost = await self.link.run(calls.finish(self._worker_id, [(job, verdict)]))
        else:
            lost = await self.link.run(calls.settle(self._worker_id, [(job, verdict)]))
        _log_written([(job, verdict)], lost)
        if not lost:
            self.counts["done" if isinstance(verdict, Done) else "attempts_not_done"] += 1
        self._held.discard(job.lease)
        self._note_lost(lost)

    async def _write_refused(self, job: ClaimedJob, verdict: Verdict, refusal: PgqError) -> None:
        """Leave `running` all the same: a done job without its result, another one as failed."""
        reason = storable(str(refusal), 500)
        plain: Verdict = (
            Done(note=f"result dropped: {reason}")
            if isinstance(verdict, Done)
            else Failed(f"its outcome was refused by the database: {reason}")
        )
        try:
            await self._write_one(job, plain)
        except PgqError as error:
            # It must not stay `running` under a live worker, nor keep the others from being
            # written: tried again now and then.
            log.error("outcome not written", job=job.id, kind=job.kind, error=str(error))
            self._stuck.append((job, verdict))
            self._again_at = clock() + STUCK

    def _note_lost(self, lost: list[int]) -> None:
        self.counts["leases_lost"] += len(lost)
        for job_id in lost:
            log.info("lease lost", job=job_id)


def _cut(done: list[Finished]) -> tuple[list[Finished], list[Finished]]:
    """As many as one statement may hold, and the rest."""
    size = 0
    for count, (_, verdict) in enumerate(done[:BATCH]):
        if verdict.result is not None:
            size += len(verdict.result)
            if size > BATCH_SIZE and count:
                return done[:count], done[count:]
    return done[:BATCH], done[BATCH:]


def _log_written(batch: Sequence[tuple[ClaimedJob, Verdict]], lost: list[int]) -> None:
    for job, verdict in batch:
        match verdict:
            case HandedBack() if job.id not in lost:
                log.info("job handed back", **_facts(job))
            case Done(note=str(note)) if job.id not in lost:
                log.warning("job done without its result", **_facts(job), note=note)


def _facts(job: ClaimedJob) -> dict[str, Any]:
    return {"job": job.id, "kind": job.kind, "queue": job.queue}


def _log(job: ClaimedJob, verdict: Verdict) -> None:
    facts = _facts(job)
    attempt = f"{job.attempts}/{job.max_attempts}"
    match verdict:
        case Failed(error) if job.attempts < job.max_attempts:
            log.warning("attempt failed", **facts, attempt=attempt, error=error)
        case Snoozed(delay):
            log.info("job snoozed", **facts, delay=delay.total_seconds())
        case Cancelled(reason):
            log.info("job cancelled", **facts, reason=reason)
        case HandedBack() | Done():  # said when it is so: others may have the job by now
            pass
        case _:
            log.warning("job failed for good", **facts, attempt=attempt, error=verdict.error)
