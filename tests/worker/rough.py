"""An app whose handlers strain their worker, or end it; files in $DESK tell and ask."""

import asyncio
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta

import pgq
from tests.worker.handlers import desk

app = pgq.App()


@app.job("harmless")
async def harmless() -> None:
    """Do nothing."""


@app.job("killed")
async def killed() -> None:
    """End the worker as the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


@app.job("segfault")
async def segfault() -> None:
    """End the worker by a fault in C code."""
    ctypes.string_at(0)


@app.job("exit")
def leave() -> None:
    """End the worker from a thread, without a word."""
    os._exit(1)


@app.job("sys.exit")
def say_farewell() -> None:
    """Try to end the worker from a thread."""
    sys.exit(1)


@app.job("sleep")
async def sleep(seconds: float) -> None:
    """Let nothing else happen in the worker's event loop."""
    time.sleep(seconds)  # noqa: ASYNC251 - the fault on purpose


@app.job("compute")
async def compute(seconds: float) -> None:
    """Keep the event loop and the interpreter busy."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


@app.job("spawn and hold")
async def spawn_and_hold(job: pgq.Job) -> None:
    """Start children that live on, with every descriptor they can get; then wait for `go`."""
    child = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    child.start()
    program = subprocess.Popen(["sleep", "60"], close_fds=False)  # noqa: ASYNC220 - it only starts
    desk(f"children-{job.attempt}").write_text(f"{child.pid} {program.pid}")
    desk(f"started-{job.attempt}").touch()
    while not desk("go").exists():  # noqa: ASYNC110 - it waits for another process
        await asyncio.sleep(0.01)


@app.job("end so")
async def end_so(job: pgq.Job, how: str) -> object:
    """Report progress until there is a file `go`, then end in this way."""
    desk(f"started-{job.attempt}").touch()
    while not desk("go").exists():
        job.progress(0.5, f"attempt {job.attempt}")
        await asyncio.sleep(0.01)
    match how:
        case "failed":
            raise ValueError("no luck")
        case "snoozed":
            return pgq.snooze(timedelta(hours=1))
        case "cancelled":
            raise pgq.Cancel("not wanted")
        case "retried":
            raise pgq.Retry(after=timedelta(hours=1))
    return how


@app.job("rest")
async def rest() -> None:
    """Wait a moment on the loop."""
    await asyncio.sleep(0.05)


@app.job("rest in a thread")
def rest_in_a_thread() -> None:
    """Wait a moment in a thread."""
    time.sleep(0.05)
