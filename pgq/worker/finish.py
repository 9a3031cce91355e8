"""The finish loop: writes verdicts as they come, in batches, again if the reply was lost.

A lone verdict is written at once; while one batch is being written the next one gathers.
"""

import asyncio

from pgq.calls import jobs as calls
from pgq.calls.jobs import Finished, Settled
from pgq.errors import PgqError
from pgq.model import Cancelled, ClaimedJob, Done, Failed, HandedBack, Snoozed, Verdict
from pgq.runner.verdict import storable
from pgq.worker import log
from pgq.worker.link import Link

BATCH = 1000


class FinishLoop:
    """Gathers verdicts and writes them."""

    def __init__(self, link: Link, held: set[int]) -> None:
        """`held`: leases of jobs whose end is not written yet; taken out once it is."""
        self.link = link
        self._worker_id = 0
        self._held = held
        self._done: list[Finished] = []
        self._settled: list[Settled] = []
        self._news = asyncio.Event()
        self._clear = asyncio.Event()
        self._clear.set()
        self.counts = {"done": 0, "not_done": 0, "lost": 0}

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

    async def flushed(self) -> None:
        """Wait until everything reported so far is written."""
        await self._clear.wait()

    async def run(self, worker_id: int) -> None:
        """Write for this worker until cancelled; cancel it only when flushed() has returned."""
        self._worker_id = worker_id
        while True:
            await self._news.wait()
            self._news.clear()
            while self._done or self._settled:
                done, self._done = self._done[:BATCH], self._done[BATCH:]
                settled, self._settled = self._settled[:BATCH], self._settled[BATCH:]
                if done:
                    await self._write(done)
                if settled:
                    await self._write_settled(settled)
                self._held.difference_update(job.lease for job, _ in done)
                self._held.difference_update(job.lease for job, _ in settled)
            if not self._news.is_set():
                self._clear.set()

    async def _write(self, done: list[Finished]) -> None:
        try:
            lost = await self.link.run(calls.finish(self._worker_id, done))
        except PgqError as error:
            await self._one_by_one([(job, verdict) for job, verdict in done], error)
            return
        self.counts["done"] += len(done) - len(lost)
        self._note_lost(lost)

    async def _write_settled(self, settled: list[Settled]) -> None:
        try:
            lost = await self.link.run(calls.settle(self._worker_id, settled))
        except PgqError as error:
            await self._one_by_one(list(settled), error)
            return
        self.counts["not_done"] += len(settled) - len(lost)
        self._note_lost(lost)

    async def _one_by_one(self, batch: list[tuple[ClaimedJob, Verdict]], error: PgqError) -> None:
        """The database refused a batch: write each job by itself, and what is refused as failed."""
        log.error("batch refused", jobs=len(batch), error=str(error))
        for job, verdict in batch:
            try:
                if isinstance(verdict, Done):
                    call = calls.finish(self._worker_id, [(job, verdict)])
                else:
                    call = calls.settle(self._worker_id, [(job, verdict)])
                lost = await self.link.run(call)
            except PgqError as refusal:
                lost = await self._refused(job, verdict, refusal)
            self._note_lost(lost)

    async def _refused(self, job: ClaimedJob, verdict: Verdict, refusal: PgqError) -> list[int]:
        """Leave `running` all the same: a done job without its result, another one as failed."""
        reason = storable(str(refusal), 500)
        if isinstance(verdict, Done):
            note = Done(note=f"result dropped: {reason}")
            call = calls.finish(self._worker_id, [(job, note)])
        else:
            failed = Failed(f"its outcome was refused by the database: {reason}")
            call = calls.settle(self._worker_id, [(job, failed)])
        while True:
            try:
                return await self.link.run(call)
            except PgqError as error:
                # It must not stay `running` under a live worker: go on trying, and say so.
                log.error("outcome not written", job=job.id, kind=job.kind, error=str(error))
                await asyncio.sleep(1)

    def _note_lost(self, lost: list[int]) -> None:
        self.counts["lost"] += len(lost)
        for job_id in lost:
            log.info("lease lost", job=job_id)


def _log(job: ClaimedJob, verdict: Verdict) -> None:
    facts = {"job": job.id, "kind": job.kind, "queue": job.queue}
    attempt = f"{job.attempts}/{job.max_attempts}"
    match verdict:
        case Failed(error):
            log.warning("attempt failed", **facts, attempt=attempt, error=error)
        case Snoozed(delay):
            log.info("job snoozed", **facts, delay=delay.total_seconds())
        case Cancelled(reason):
            log.info("job cancelled", **facts, reason=reason)
        case HandedBack():
            log.info("job handed back", **facts)
        case Done():
            pass
        case _:
            log.warning("job failed for good", **facts, attempt=attempt, error=verdict.error)
