"""How much a lane asks for, by how long its jobs run."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import pgq
from pgq.model import ClaimedJob, Verdict
from pgq.runner import Backing
from pgq.runner.coroutine import CoroutineRunner
from pgq.runner.thread import ThreadRunner, handler_perform
from pgq.worker.lane import AHEAD, BATCH, MAX_AHEAD, Lane, Pace

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
PATIENCE = 10.0
ALONE = Backing("", lambda *_: None, lambda _: None, lambda *_: None)
"""No worker stands behind these runners."""


def claims(count: int, *, kind: str = "work", start: int = 0) -> list[ClaimedJob]:
    numbers = range(start, start + count)
    return [ClaimedJob(n, n, "q", kind, {}, 0, NOW, 1, 3, None) for n in numbers]


class Crew:
    """A lane with a real runner, and what ended so far."""

    def __init__(self, app: pgq.App, capacity: int, *, threads: bool = False) -> None:
        self.ended: list[tuple[ClaimedJob, Verdict]] = []
        self.lane = Lane(["work"], ["q"])
        report = self.lane.reporting(lambda job, verdict: self.ended.append((job, verdict)))
        if threads:
            perform = handler_perform(app.handlers, ALONE)
            runner = ThreadRunner(perform, capacity, report, backing=ALONE)
            self.lane.attach(runner)
        else:
            self.lane.attach(CoroutineRunner(app.handlers, capacity, report, backing=ALONE))

    async def work_off(self, jobs: list[ClaimedJob]) -> None:
        self.lane.take(jobs)
        async with asyncio.timeout(PATIENCE):
            while self.lane.busy:  # noqa: ASYNC110 - it waits as the worker does
                await asyncio.sleep(0.001)


async def test_at_first_a_lane_asks_for_what_can_start() -> None:
    app = pgq.App()
    app.job("work")(lambda: None)

    assert Crew(app, 7, threads=True).lane.room() == 7


async def test_quick_jobs_are_asked_for_in_batches() -> None:
    app = pgq.App()

    @app.job("work")
    async def work() -> None: ...

    crew = Crew(app, 2)
    await crew.work_off(claims(2))
    await crew.work_off(claims(500, start=2))

    assert len(crew.ended) == 502
    assert crew.lane.room() > 50


async def test_slow_jobs_that_end_together_are_not_taken_for_quick_ones() -> None:
    app = pgq.App()

    @app.job("work")
    async def work() -> None:
        await asyncio.sleep(0.15)

    crew = Crew(app, 100)
    for start in (0, 100):
        await crew.work_off(claims(100, start=start))

    assert crew.lane.room() == 100


async def test_jobs_of_a_kind_not_seen_yet_go_back_if_they_would_wait_for_a_slot() -> None:
    app = pgq.App()
    go = threading.Event()

    @app.job("work")
    def work() -> None:
        assert go.wait(PATIENCE)

    crew = Crew(app, 2, threads=True)
    crew.lane.pace.ended(0.0, "quick", seconds=1e-6, idle=True)
    crew.lane.pace.rate = 10_000.0
    back = crew.lane.take(claims(100))

    # Two start, and of a kind that may take all of AHEAD two more may wait for two slots.
    assert [job.id for job in back] == list(range(4, 100))
    assert crew.lane.room() == 0
    go.set()
    await crew.work_off([])


async def test_a_full_lane_asks_for_nothing() -> None:
    app = pgq.App()
    go = threading.Event()

    @app.job("work")
    def work() -> None:
        assert go.wait(PATIENCE)

    crew = Crew(app, 2, threads=True)
    crew.lane.take(claims(2))
    assert crew.lane.room() == 0
    go.set()
    await crew.work_off([])
    assert crew.lane.room() >= 2


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads give way to one another as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("restless")
async def test_every_job_is_counted_until_its_end_is_told() -> None:
    app = pgq.App()

    @app.job("work")
    def work() -> None: ...

    crew = Crew(app, 3, threads=True)
    crew.lane.pace.ended(0.0, "work", seconds=1e-6, idle=True)
    crew.lane.take(claims(300))
    async with asyncio.timeout(PATIENCE):
        while len(crew.ended) < 300:
            runner = crew.lane.runner
            assert runner.running + runner.waiting + len(crew.ended) == 300
            await asyncio.sleep(0)

    assert not crew.lane.busy


async def test_a_plain_job_gets_the_timeout_of_its_handler() -> None:
    app = pgq.App()
    seen = []

    @app.job("work")
    async def work(job: pgq.Job) -> None:
        seen.append(job.timeout)

    crew = Crew(app, 1)
    lane = Lane(["work"], ["q"], timeouts={"work": timedelta(minutes=1)})
    lane.attach(crew.lane.runner)
    own = claims(1, start=1)[0]._replace(timeout=timedelta(seconds=5))
    lane.take([*claims(1), own])
    await crew.work_off([])

    assert seen == [timedelta(minutes=1), timedelta(seconds=5)]


def test_the_rate_is_taken_over_all_of_a_short_busy_time() -> None:
    pace = Pace()
    pace.started(10.0)
    for n in range(100):
        pace.ended(12.0 + n / 1e5, "a", seconds=2.0, idle=n == 99)

    assert pace.rate < 51
    assert pace.seconds == 2.0


def test_the_rate_of_a_busy_lane_is_taken_over_windows() -> None:
    pace = Pace()
    pace.started(0.0)
    for n in range(1, 5_001):
        pace.ended(n / 1000, "a", seconds=0.001, idle=False)

    assert 950 < pace.rate < 1050
    assert int(pace.rate * AHEAD) < MAX_AHEAD
    assert BATCH <= MAX_AHEAD
