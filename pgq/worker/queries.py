"""Cancelling what jobs that were made to end still run in the database."""

import asyncio
import contextlib

from pgq.calls import jobs as calls
from pgq.errors import PgqError
from pgq.model import ClaimedJob
from pgq.worker import log
from pgq.worker.link import Link

LAST = 2.0
"""Seconds for the last ones, of a worker that stops."""


class Queries:
    """Cancels the statements of attempts; made inside the event loop."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._doomed: asyncio.Queue[ClaimedJob] = asyncio.Queue()

    def cancel(self, job: ClaimedJob) -> None:
        """Cancel what this attempt's own connections run, soon; from any thread."""
        self._loop.call_soon_threadsafe(self._doomed.put_nowait, job)

    async def run(self) -> None:
        """Cancel until cancelled."""
        while True:
            await self._cancel(await self._doomed.get())

    async def rest(self) -> None:
        """Cancel what is left, within bounds: what jobs that just ended run is to end too."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST):
                while not self._doomed.empty():
                    await self._cancel(self._doomed.get_nowait())

    async def _cancel(self, job: ClaimedJob) -> None:
        try:
            cancelled = await self._link.run_once(calls.cancel_queries(job))
        except PgqError as error:
            log.warning("queries not cancelled", job=job.id, error=str(error))
        else:
            if cancelled:
                log.info("queries cancelled", job=job.id, queries=cancelled)
