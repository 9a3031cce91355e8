"""The handlers that the chaos run works with: each writes one row, in a transaction of its own.

`seconds`: how long each attempt works, the last one of them ever after. `fails`: how many attempts
raise instead of writing.
"""

import asyncio
import os
import time
from datetime import timedelta

import psycopg

import pgq
from tests.chaos import journal

DSN = "CHAOS_DSN"
"""The environment variable with the server's own address: handlers take no pooler."""

WRITE = "insert into chaos.written (job, attempt, process) values (%s, %s, %s)"
NAME = "chaos handler"
SECOND = timedelta(seconds=1)

app = pgq.App()


class Unlucky(Exception):
    """An attempt that was to fail."""


@app.job("coroutine", retry=SECOND)
async def coroutine(job: pgq.Job, seconds: list[float], fails: int) -> None:
    """Work on the event loop; the row is written in the midst of it."""
    with journal.noted(job, thread=False):
        before, after = _parts(job, seconds)
        await asyncio.sleep(before)
        _try_luck(job, fails)
        conninfo = os.environ[DSN]
        async with await psycopg.AsyncConnection.connect(conninfo, application_name=NAME) as conn:
            await conn.execute(WRITE, _row(job))
        await asyncio.sleep(after)


@app.job("thread", retry=SECOND)
def thread(job: pgq.Job, seconds: list[float], fails: int) -> None:
    """The same in a thread, which ends when it is asked to."""
    with journal.noted(job, thread=True):
        before, after = _parts(job, seconds)
        _rest(job, before)
        _try_luck(job, fails)
        _write(job)
        _rest(job, after)


@app.job("deaf thread", retry=SECOND)
def deaf_thread(job: pgq.Job, seconds: list[float], fails: int) -> None:
    """The same, whatever it is asked."""
    with journal.noted(job, thread=True):
        before, after = _parts(job, seconds)
        time.sleep(before)
        _try_luck(job, fails)
        _write(job)
        time.sleep(after)


def _parts(job: pgq.Job, seconds: list[float]) -> tuple[float, float]:
    whole = seconds[min(job.attempt, len(seconds)) - 1]
    return whole * 0.7, whole * 0.3


def _try_luck(job: pgq.Job, fails: int) -> None:
    if job.attempt <= fails:
        raise Unlucky(f"attempt {job.attempt} was to fail")


def _rest(job: pgq.Job, seconds: float) -> None:
    if job.cancelled.wait(seconds):
        raise journal.Stopped


def _write(job: pgq.Job) -> None:
    with psycopg.connect(os.environ[DSN], application_name=NAME) as conn:
        conn.execute(WRITE, _row(job))


def _row(job: pgq.Job) -> tuple[int, int, str]:
    return job.id, job.attempt, journal.process()
