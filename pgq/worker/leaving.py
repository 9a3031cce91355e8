"""The end of a worker's process, whatever its handlers left behind.

A task that swallows its cancellation, or a thread that an async handler left (asyncio.to_thread),
would keep the event loop, and with it the process, for ever, although its job was handed back and
runs elsewhere. So would a thread or child process that Python waits for, or a hook, at its exit.
"""

import asyncio
import os
import threading
from contextlib import suppress
from typing import NoReturn

from pgq.runner.executor import Executor
from pgq.worker import log

PATIENCE = 1.0
"""Seconds for what was left behind to end."""

EXIT = 5.0
"""Seconds for Python's own exit."""


async def leave(executor: Executor, exit_code: int, *, abandoned: bool) -> None:
    """Return when nothing is left behind; else end the process with this code.

    `abandoned`: jobs still run that others may run by now, so that nothing is waited for.
    """
    if abandoned:
        _end(exit_code)
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    threads = [asyncio.wrap_future(future) for future in list(executor.open)]
    left = {*tasks, *threads}
    if left:
        _, left = await asyncio.wait(left, timeout=PATIENCE)
    if left:
        _end(exit_code, left=len(left))


def bound_exit(exit_code: int) -> None:
    """End the process with this code if it does not end soon by itself; for its last moment."""
    late = threading.Timer(EXIT, _end, [exit_code])
    late.daemon = True
    with suppress(RuntimeError):  # no thread can be had: then it takes as long as it takes
        late.start()


def _end(exit_code: int, *, left: int | None = None) -> NoReturn:
    log.warning("the process ends, so that what handlers left behind does", left=left)
    log.flush(PATIENCE)
    os._exit(exit_code)
