"""Handlers that run in processes of their own: a child process imports them from here."""

import asyncio
import os
import signal

import pgq


def pid() -> int:
    return os.getpid()


async def on_a_loop(job: pgq.Job) -> str:
    await asyncio.sleep(0)
    return f"{job.kind} {job.attempt}"


def exits(code: int) -> None:
    print("about to end", flush=True)
    os._exit(code)


def crashes() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)
