"""An app whose handlers lay hands on what the whole process shares, and whose logging forgets."""

import asyncio
import atexit
import logging.config
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pgq
import pgq.worker.log
from tests.worker.handlers import desk

logging.config.dictConfig({"version": 1})  # disables the loggers that there are, by default

app = pgq.App()
_kept = ThreadPoolExecutor(1)


@app.job("quick")
async def quick() -> None:
    """Do nothing."""


@app.job("stop the loop")
async def stop_the_loop() -> None:
    """End the event loop, as a script may that owns it."""
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)


@app.job("cancel all tasks")
async def cancel_all_tasks() -> None:
    """Cancel what is not ours."""
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


@app.job("take signals")
async def take_signals() -> None:
    """Take a signal, and wait until the worker has it again."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, print)
    loop.remove_signal_handler(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)


@app.job("leave a pool")
def leave_a_pool() -> None:
    """Leave a thread that Python waits for as it exits."""
    _kept.submit(threading.Event().wait)


@app.job("close stdout")
def close_stdout() -> None:
    """Close what is not ours."""
    sys.stdout.close()


@app.job("go on")
def go_on(job: pgq.Job) -> None:
    """Show that this attempt runs, until there is a file `go`."""
    desk(f"started-{job.attempt}").touch()
    while not desk("go").exists():
        desk("alive").write_text(str(time.time()))
        time.sleep(0.01)


@app.job("hang at exit")
def hang_at_exit() -> None:
    """Leave a hook that does not end."""
    atexit.register(threading.Event().wait)


@app.job("leave an alarm", isolation="process")
def leave_an_alarm() -> None:
    """Leave a signal that is on its way."""
    signal.setitimer(signal.ITIMER_REAL, 0.2)


@app.job("outlast it", isolation="process")
def outlast_it() -> None:
    """Work for longer than that."""
    time.sleep(0.4)


@app.job("crowd")
async def crowd(job: pgq.Job) -> None:
    """Keep a thread of the event loop for good."""
    desk(f"started-{job.id}").touch()
    await asyncio.to_thread(threading.Event().wait)
