"""A lane: the kinds that one runner runs, the places where their claims ended, and how many to ask.

A worker holds claimed jobs that have not started only for what it will start within about 0.2 s,
by its measured rate: attempts are charged at claim, and a job that kills the worker takes what was
claimed beside it along.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

from pgq.model import ClaimedJob, Verdict
from pgq.runner import Report, Runner
from pgq.runner.interrupt import clock
from pgq.worker.places import Places

Take: TypeAlias = Callable[[ClaimedJob, Verdict], None]
"""Takes a verdict, to write it."""

AHEAD = 0.2
"""Seconds of work, by the measured rate, that may wait claimed."""

MAX_AHEAD = 1000
BATCH = 500
"""Jobs per claim at most."""

SLOW = 0.1
"""Handlers that take longer on average than this many seconds get nothing ahead."""

LOOK_AGAIN = 0.02
"""Seconds after which a lane that gave nothing is looked for again while another one is busy."""

STALE = 1.0
"""Seconds after which a claimed job that could not start is handed back."""

WINDOW = 0.2
"""Seconds over which the rate of a runner that stays busy is measured."""


class Pace:
    """How long jobs run, and at which rate they end while the runner is busy.

    Handlers that started together end together, so the rate is never taken over a part of a short
    busy time: over all of it when it ends, or over windows of 0.2 s while it lasts.
    """

    def __init__(self) -> None:
        self.rate = 0.0
        """Jobs a second."""
        self.seconds = 0.0
        """The mean run time of the latest jobs."""
        self._by_kind: dict[str, float] = {}
        self._busy_since: float | None = None
        self._ended = 0
        self._window_since = 0.0
        self._window_ended = 0

    def started(self, now: float) -> None:
        """The runner has work."""
        if self._busy_since is None:
            self._busy_since = self._window_since = now
            self._ended = self._window_ended = 0

    def expected(self, kind: str) -> float:
        """How long a job of this kind runs; of a kind not seen yet, long."""
        return self._by_kind.get(kind, AHEAD)

    def ended(self, now: float, kind: str, *, seconds: float, idle: bool) -> None:
        """A job ended that ran for `seconds`; `idle`: it was the last one."""
        self.seconds += (seconds - self.seconds) * (0.1 if self.seconds else 1.0)
        mean = self._by_kind.get(kind)
        self._by_kind[kind] = seconds if mean is None else mean + (seconds - mean) * 0.1
        if self._busy_since is None:
            return
        self._ended += 1
        self._window_ended += 1
        if idle:
            self._learn(self._ended, now - self._busy_since)
            self._busy_since = None
        elif now - self._window_since >= WINDOW:
            self._learn(self._window_ended, now - self._window_since)
            self._window_since, self._window_ended = now, 0

    def _learn(self, ended: int, seconds: float) -> None:
        rate = ended / max(seconds, 1e-4)
        self.rate = (self.rate + rate) / 2 if self.rate else rate


class Lane:
    """One runner with its kinds and places."""

    def __init__(
        self,
        kinds: Sequence[str] | None,
        queues: Sequence[str],
        *,
        timeouts: Mapping[str, timedelta] | None = None,
    ) -> None:
        """`timeouts`: by kind, for jobs without one of their own (a plain INSERT)."""
        self._timeouts = timeouts
        self.kinds = None if kinds is None else list(kinds)
        self.places = Places(list(queues))
        self.pace = Pace()
        self.full_at = 0.0
        """When the next full look is due."""
        self.singly_until = 0.0
        """Until when jobs are claimed one by one."""
        self.idle = False
        """Whether the last look found nothing."""
        self._look_at = 0.0
        self.empty = False
        """Whether the last look was a full one and found nothing."""
        self._runner: Runner | None = None
        self._moved_at = clock()

    def attach(self, runner: Runner) -> None:
        """Use this runner."""
        self._runner = runner

    @property
    def runner(self) -> Runner:
        """The runner."""
        assert self._runner is not None
        return self._runner

    def reporting(self, take: Take) -> Report:
        """`take`, with the pace measured on the way."""

        def noted(job: ClaimedJob, verdict: Verdict, seconds: float) -> None:
            self._moved_at = now = clock()
            runner = self._runner
            idle = runner is not None and not runner.running and not runner.waiting
            self.pace.ended(now, job.kind, seconds=seconds, idle=idle)
            take(job, verdict)

        return noted

    def looked(self, now: float, *, found: bool) -> None:
        """A look ended that found something or nothing."""
        self.idle = not found
        self._look_at = now + LOOK_AGAIN

    def rests(self, now: float) -> bool:
        """Whether the last look found nothing, a moment ago."""
        return self.idle and now < self._look_at

    @property
    def busy(self) -> bool:
        """Whether jobs run or wait here."""
        return bool(self.runner.running or self.runner.waiting)

    def room(self) -> int:
        """How many jobs to claim now; 0 when enough are held."""
        runner = self.runner
        free = max(0, runner.capacity - runner.running - runner.waiting)
        ahead = self._ahead() - max(0, runner.running + runner.waiting - runner.capacity)
        wanted = free + max(0, ahead)
        # Not a job at a time while plenty are held: claims cost least in batches.
        if free == 0 and wanted < min(BATCH, self._ahead()) // 2:
            return 0
        return min(BATCH, wanted)

    def _ahead(self) -> int:
        if self.pace.seconds > SLOW:
            return 0
        return min(MAX_AHEAD, int(self.pace.rate * AHEAD))

    def take(self, jobs: Sequence[ClaimedJob]) -> list[ClaimedJob]:
        """Run these; gives back those at the end that would wait too long for a slot."""
        now = clock()
        if not self.runner.waiting:
            self._moved_at = now
        self.pace.started(now)
        timeouts = self._timeouts
        if timeouts:
            jobs = [
                job._replace(timeout=timeouts[job.kind])
                if job.timeout is None and job.kind in timeouts
                else job
                for job in jobs
            ]
        kept = self._bearable(jobs)
        self.runner.submit(jobs[:kept])
        if kept < len(jobs):
            self.pace.rate = 0.0  # it was measured on other jobs than these
        return list(jobs[kept:])

    def _bearable(self, jobs: Sequence[ClaimedJob]) -> int:
        """How many of these jobs start within AHEAD, as far as their kinds are known."""
        runner = self.runner
        kept = max(0, runner.capacity - runner.running - runner.waiting)
        work = AHEAD * runner.capacity
        while kept < len(jobs) and work > 0:
            work -= self.pace.expected(jobs[kept].kind)
            kept += 1
        return min(kept, len(jobs))

    def stale(self) -> list[ClaimedJob]:
        """Jobs that were held for a second and could not start: to be handed back."""
        if not self.runner.waiting or clock() - self._moved_at < STALE:
            return []
        self.pace.rate = 0.0
        return self.runner.withdraw()
