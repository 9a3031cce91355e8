"""The producer: enqueues at a steady rate, each job in one transaction with a row of its own."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event

import psycopg

import pgq
from pgq.errors import Unavailable

SCHEMA = """
    create schema chaos;
    create table chaos.orders (number bigint primary key, job bigint not null);
    create table chaos.written (job bigint not null, attempt integer not null, process text);
"""
ORDER = "insert into chaos.orders (number, job) values (%s, %s)"


@dataclass(slots=True)
class Producer:
    """Enqueues so many jobs."""

    dsn: str
    jobs: Iterator[pgq.NewJob]
    acknowledged: int = 0
    """How many commits were answered."""
    _number: int = 0

    def work(self, count: int, *, rate: float, over: Event) -> None:
        """Until so many commits were answered, or it is over; a lost connection is made anew."""
        began = time.monotonic()
        while self.acknowledged < count and not over.is_set():
            try:
                with psycopg.connect(self.dsn, autocommit=True) as conn:
                    while self.acknowledged < count and not over.is_set():
                        over.wait(max(0.0, began + self._number / rate - time.monotonic()))
                        self._order(conn)
            except (psycopg.OperationalError, Unavailable):
                over.wait(0.05)

    def _order(self, conn: psycopg.Connection) -> None:
        job = next(self.jobs)
        self._number += 1
        with conn.transaction():
            enqueued = pgq.enqueue(
                conn,
                job.kind,
                job.payload,
                max_attempts=job.max_attempts,
                timeout=job.timeout,
            )
            conn.execute(ORDER, [self._number, enqueued.id])
        self.acknowledged += 1
