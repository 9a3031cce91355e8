"""The steady stream of jobs of the soak, and their removal once they have ended."""

import random
import time
from dataclasses import dataclass
from threading import Event

import psycopg

import pgq

COMMANDS = "commands"
"""The queue of the jobs that a command runs."""

COMMAND_RATE = 2.0
"""Commands a second: each is a process."""

MIX = {"coroutine": 600, "thread": 350, "process": 40, "raise": 10}

PAYLOAD = {"text": "an order of two mugs and a teapot"}

BURST = 40
"""Jobs of each kind at the beginning: threads and processes start as they are needed, and are to be
all there before the first look."""

TICK = 0.1
"""Seconds between two enqueues."""

FORGET = """
    with old as materialized (
        select id from pgq.jobs
        where finished_at < now() - interval '30 seconds'
        order by id limit 5000
    ), recorded as (
        delete from pgq.attempts where job_id = any (array(select id from old))
    )
    delete from pgq.jobs where id = any (array(select id from old))
"""
"""Finished jobs stay for a moment, to be looked at; the table does not grow."""


@dataclass(slots=True)
class Stream:
    """Enqueues at a rate, and forgets what has ended."""

    dsn: str
    rate: float
    """Jobs a second for handlers; commands come on top."""
    enqueued: int = 0

    def flow(self, over: Event) -> None:
        """Enqueue until it is over, whatever becomes of the jobs."""
        dice = random.Random(1)
        kinds, weights = list(MIX), list(MIX.values())
        handled = commands = 0
        began = time.monotonic()
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            first = [pgq.NewJob(kind, PAYLOAD, max_attempts=1) for kind in MIX] * BURST
            first += [pgq.NewJob("command", queue=COMMANDS)] * BURST
            pgq.enqueue_many(conn, first)
            while not over.wait(TICK):
                elapsed = time.monotonic() - began
                drawn = dice.choices(kinds, weights, k=round(elapsed * self.rate) - handled)
                due = [pgq.NewJob(kind, PAYLOAD, max_attempts=1) for kind in drawn]
                wanted = round(elapsed * COMMAND_RATE) - commands
                due += [pgq.NewJob("command", queue=COMMANDS)] * wanted
                with conn.transaction():
                    pgq.enqueue_many(conn, due)
                handled, commands = handled + len(drawn), commands + wanted
                self.enqueued = len(first) + handled + commands

    def forget(self, over: Event) -> None:
        """Delete finished jobs until it is over."""
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            while not over.wait(1.0):
                while conn.execute(FORGET.encode()).rowcount == 5000:
                    pass
