"""The soak: two workers, a steady stream of jobs, and a look at what they hold now and then."""

import signal
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from threading import Event
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from tests.chaos.flatness import Trend, count_trend, growing, trends
from tests.chaos.history import Rules
from tests.chaos.observer import DEPTH, Observer
from tests.chaos.run import scene
from tests.chaos.stream import COMMANDS, Stream
from tests.support.workers import WorkerProcess, Workers, starting

APP, EXEC = "soak-app", "soak-exec"
ARGUMENTS = {
    APP: ("--app", "tests.chaos.soak_app:app"),
    EXEC: ("--exec", "cat >/dev/null", "--queue", COMMANDS),
}
ENDED = """
    select coalesce(sum(done), 0)::bigint, coalesce(sum(failed), 0)::bigint from pgq.throughput
"""
DRAIN = 60.0
"""Seconds for the last jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to do in a soak."""

    seconds: float
    rate: float = 500.0
    every: float = 10.0
    """Seconds between two samples."""

    @property
    def warm_up(self) -> float:
        """Until caches are filled and threads started."""
        return min(300.0, self.seconds / 10)


def run(options: Options) -> dict[str, Any]:
    """Soak; gives the figures with the series, and what was not as it should be."""
    with scene(Rules()) as stage, starting(stage.direct, {}) as fleet:
        workers = {name: _start(fleet, name) for name in ARGUMENTS}
        for worker in workers.values():
            worker.seen("worker started")
        processes = {name: worker.pid for name, worker in workers.items()}
        observer = Observer(stage.direct, processes, APP, options.every)
        stream = Stream(stage.direct, options.rate)
        _work(options, observer, stream)
        done, failed = _drained(stage.direct)
        codes = {name: _stop(worker) for name, worker in workers.items()}
    found = _trends(observer, options)
    wrong = growing(found)
    enqueued = stream.enqueued + len(observer.queue)  # whose every look is a job, too
    if done + failed != enqueued:
        wrong.append(f"{enqueued} jobs enqueued, {done} done, {failed} failed")
    wrong += [f"{name} ended with code {code}" for name, code in codes.items() if code]
    return {
        "versions": {"postgresql": stage.version},
        "jobs": {"enqueued": enqueued, "done": done, "failed": failed},
        "trends": {name: [asdict(trend) for trend in series] for name, series in found.items()},
        "violations": wrong,
        "series": {
            **{
                name: [asdict(seen) for seen in series] for name, series in observer.samples.items()
            },
            "queue": [asdict(seen) for seen in observer.queue],
        },
    }


def _start(fleet: Workers, name: str) -> WorkerProcess:
    """A worker whose connections are known by its name."""
    dsn = make_conninfo(fleet.dsn, application_name=name)
    return fleet.start(*ARGUMENTS[name], dsn=dsn)


def _work(options: Options, observer: Observer, stream: Stream) -> None:
    """Enqueue, look and forget for so long; whoever fails ends it all."""
    over = Event()
    with ThreadPoolExecutor(3) as threads:
        works = [
            threads.submit(work, over) for work in (stream.flow, stream.forget, observer.watch)
        ]
        try:
            wait(works, timeout=options.seconds, return_when=FIRST_EXCEPTION)
        finally:
            over.set()
        for work in works:
            work.result()


def _drained(dsn: str) -> tuple[int, int]:
    """Wait for the last jobs; how many were done and failed in all."""
    until = time.monotonic() + DRAIN
    with psycopg.connect(dsn, autocommit=True) as conn:
        while conn.execute(DEPTH.encode()).fetchone() != (0,) and time.monotonic() < until:
            time.sleep(0.05)
        row = conn.execute(ENDED.encode()).fetchone()
    assert row is not None
    return row[0], row[1]


def _stop(worker: WorkerProcess) -> int:
    worker.send(signal.SIGTERM)
    return worker.ended()


def _trends(observer: Observer, options: Options) -> dict[str, Sequence[Trend]]:
    found: dict[str, Sequence[Trend]] = {
        name: trends(samples, warm_up=options.warm_up) for name, samples in observer.samples.items()
    }
    depths = [seen.depth for seen in observer.queue if seen.at >= options.warm_up]
    # A queue that is worked off as it fills holds what a moment brings, more or less.
    return found | {"queue": [count_trend("depth", [max(depth, options.rate) for depth in depths])]}
