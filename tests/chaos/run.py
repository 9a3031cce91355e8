"""One chaos run: a server, workers, a producer and the monkey; then all is drained and read."""

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import psycopg

from pgq import migrate
from tests.chaos import plan
from tests.chaos.collect import collect
from tests.chaos.fleet import PATIENCE, Fleet, sailing
from tests.chaos.history import Event as Noted
from tests.chaos.history import History, Rules, Told
from tests.chaos.monkey import Monkey
from tests.chaos.producer import SCHEMA, Producer
from tests.support import cluster
from tests.support.pooler import pooling

DRAIN = 90.0
"""Seconds for the last jobs, once nothing is broken any more."""

ARGUMENTS = ("--app", "tests.chaos.app:app", "--concurrency", "16", "--grace", "2s")

HURRY = """
    update pgq.jobs set scheduled_at = now()
    where status = 'pending' and scheduled_at > now() + interval '1 second'
"""
"""Nobody waits for the backoff of a job that was lost often: minutes, by default."""

LEFT = "select count(*) from pgq.jobs where status in ('pending', 'running')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to do in a run."""

    seconds: float
    jobs: int
    workers: int = 3
    seed: int = 1
    pooled: bool = False
    every: float = 4.0
    """Seconds between two faults, on average."""
    patience: float = 0.5
    """Seconds that a busy host may add to what is promised."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A server with the schema in it, and how the workers reach it."""

    cluster: cluster.Cluster
    direct: str
    dsn: str
    version: str


@contextmanager
def scene(rules: Rules) -> Iterator[Scene]:
    """A durable private server, of the version PGQ_TEST_PG; behind a pooler if so wanted."""
    version = int(os.environ.get("PGQ_TEST_PG", "18"))
    with ExitStack() as stack:
        server = stack.enter_context(cluster.running(version, durable=True))
        direct = server.dsn()
        with psycopg.connect(direct) as conn:
            migrate.install(conn)
            conn.execute(SCHEMA.encode())
            conn.execute(
                "insert into pgq.queues (queue, visibility_timeout)"
                " values ('default', make_interval(secs => %s))",
                [rules.visibility],
            )
            shown = conn.info.parameter_status("server_version")
        dsn = stack.enter_context(pooling(direct, size=2, retry=1)) if rules.pooled else direct
        yield Scene(server, direct, dsn, shown or "unknown")


def run(options: Options, folder: Path) -> tuple[History, str]:
    """Run, and give what happened, with the server's version; logs stay in the folder."""
    rules = Rules(pooled=options.pooled, patience=options.patience)
    with scene(rules) as stage:
        fleet = Fleet(stage.dsn, stage.direct, folder, ARGUMENTS)
        monkey = Monkey(stage.cluster, fleet, stage.direct, random.Random(options.seed))
        producer = Producer(stage.direct, plan.jobs(options.seed))
        with sailing(fleet, options.workers):
            _break(options, monkey, producer)
            _drain(stage.direct)
            events = [*monkey.events, *_dismiss(fleet)]
        history = collect(
            stage.direct,
            folder,
            rules=rules,
            acknowledged=producer.acknowledged,
            processes=fleet.processes(),
            events=events,
        )
    return history, stage.version


def _break(options: Options, monkey: Monkey, producer: Producer) -> None:
    """Enqueue all the time, and break things all the time; whoever fails ends both."""
    over = Event()
    deeds = plan.deeds(options.seed, seconds=options.seconds, every=options.every)
    rate = options.jobs / options.seconds

    with ThreadPoolExecutor(2) as threads:
        works = [
            threads.submit(monkey.work, deeds, over),
            threads.submit(producer.work, options.jobs, rate=rate, over=over),
        ]
        try:
            wait(works, return_when=FIRST_EXCEPTION)
        finally:
            over.set()
        for work in works:
            work.result()


def _drain(dsn: str) -> None:
    """Let the workers end what is left; what they do not end is for the checker to say."""
    until = time.monotonic() + DRAIN
    with psycopg.connect(dsn, autocommit=True) as conn:
        while time.monotonic() < until:
            conn.execute(HURRY.encode())
            if conn.execute(LEFT.encode()).fetchone() == (0,):
                return
            time.sleep(0.2)


def _dismiss(fleet: Fleet) -> Sequence[Noted]:
    """Tell all workers to end, and wait; who does not is killed as the fleet is closed."""
    events = []
    for running in fleet.end():
        if running.told:
            continue
        events.append(Told(at=time.monotonic(), process=running.name))
        running.send(signal.SIGTERM)
    until = time.monotonic() + PATIENCE
    while fleet.running() and time.monotonic() < until:
        time.sleep(0.02)
    return events
