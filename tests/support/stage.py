"""A runner on a stage: without a worker, and time passes when a test says so."""

import asyncio
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pgq
from pgq.model import ClaimedJob, Verdict
from pgq.registry.app import Isolation
from pgq.runner import Backing, Runner
from pgq.runner.coroutine import CoroutineRunner
from pgq.runner.interrupt import Interrupt, clock
from pgq.runner.thread import ThreadRunner, handler_perform
from tests.support.databases import PATIENCE

AN_HOUR = timedelta(hours=1)


@dataclass
class Stage:
    """One runner, and what it said."""

    app: pgq.App = field(default_factory=pgq.App)
    verdicts: dict[int, list[Verdict]] = field(default_factory=dict)
    queries: list[int] = field(default_factory=list)
    """Jobs whose queries were to be cancelled."""
    complaints: list[str] = field(default_factory=list)
    began: float = field(default_factory=clock)
    runner: Runner = field(init=False)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def open(self, isolation: Isolation, capacity: int = 1) -> None:
        """Make the runner, for the handlers that the app has."""
        backing = self.backing()
        handlers = self.app.handlers
        if isolation is Isolation.ASYNC:
            self.runner = CoroutineRunner(handlers, capacity, self._report, backing=backing)
        else:
            perform = handler_perform(handlers, backing)
            self.runner = ThreadRunner(perform, capacity, self._report, backing=backing)

    def backing(self) -> Backing:
        """What a runner asks of its worker is noted here."""
        return Backing(
            dsn="",
            note_progress=lambda _job, _text: None,
            cancel_queries=lambda job: self.queries.append(job.id),
            complain=lambda _job, what: self.complaints.append(what),
        )

    def _report(self, job: ClaimedJob, verdict: Verdict, _seconds: float) -> None:
        self.verdicts.setdefault(job.id, []).append(verdict)
        self._news.set()

    def ask(self, cause: Interrupt, *job_ids: int) -> None:
        """Ask these jobs to end."""
        self.runner.ask(cause, lambda job: job.id in job_ids)

    def after(self, seconds: float) -> None:
        """Let the runner believe that so much time has passed."""
        self.runner.tick(self.began + seconds)

    async def outcome(self, job_id: int) -> Verdict:
        """Wait for the end of a job, and see that it has only one."""
        async with asyncio.timeout(PATIENCE):
            while job_id not in self.verdicts:
                self._news.clear()
                await self._news.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        (verdict,) = self.verdicts[job_id]
        return verdict


def job(job_id: int = 1, kind: str = "work", timeout: timedelta | None = None) -> ClaimedJob:
    now = datetime.now(UTC)
    return ClaimedJob(job_id, job_id + 100, "default", kind, {}, 0, now, 1, 3, timeout)


async def settle_down() -> None:
    """Let what is scheduled on the event loop happen."""
    for _ in range(10):
        await asyncio.sleep(0)


async def passes(event: threading.Event) -> None:
    """Wait for a thread, while the event loop runs."""
    assert await asyncio.to_thread(event.wait, PATIENCE)
