"""What is seen of a soak at one moment: what each worker holds, and how the queue does."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event

import psycopg

import pgq
from tests.chaos import census
from tests.chaos.flatness import Sample

DEPTH = "select count(*) from pgq.jobs where status in ('pending', 'running')"
WAIT = """
    select coalesce(extract(epoch from
        percentile_cont(0.99) within group (order by locked_at - scheduled_at)), 0)::float8
    from pgq.jobs
    where status = 'done' and finished_at > now() - make_interval(secs => %s)
"""
CONNECTIONS = "select count(*) from pg_catalog.pg_stat_activity where application_name = %s"
ANSWERED = timedelta(seconds=30)
"""For the job that counts tasks, which waits in line like any other."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue at one moment."""

    at: float
    depth: int
    wait_p99: float
    """Seconds from due to claimed, of the jobs done since the last sample."""


@dataclass(slots=True)
class Observer:
    """Looks now and then. Workers are known by the `application_name` of their connections."""

    dsn: str
    workers: Mapping[str, int]
    """The process of each."""
    asked: str
    """The worker that runs the job which counts tasks."""
    every: float
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    queue: list[Queue] = field(default_factory=list)

    def watch(self, over: Event) -> None:
        """Look until it is over."""
        began = time.monotonic()
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            while not over.wait(self.every):
                at = round(time.monotonic() - began, 1)
                for name, pid in self.workers.items():
                    self.samples.setdefault(name, []).append(self._look(conn, name, pid, at=at))
                depth = _number(conn, DEPTH)
                p99 = round(_number(conn, WAIT, self.every), 4)
                self.queue.append(Queue(at, int(depth), p99))

    def _look(self, conn: psycopg.Connection, name: str, pid: int, *, at: float) -> Sample:
        tasks = None
        if name == self.asked:
            job = pgq.enqueue(conn, "count tasks")
            tasks = pgq.wait(conn, job.id, timeout=ANSWERED)
        memory, peak = census.memory(pid)
        return Sample(
            at=at,
            memory=memory,
            peak=peak,
            threads=census.threads(pid),
            descriptors=census.descriptors(pid),
            children=census.children(pid),
            connections=int(_number(conn, CONNECTIONS, name)),
            tasks=tasks,
        )


def _number(conn: psycopg.Connection, query: str, *params: object) -> float:
    row = conn.execute(query.encode(), params).fetchone()
    assert row is not None
    return float(row[0])
