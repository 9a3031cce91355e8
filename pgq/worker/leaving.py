"""The end of a worker's process, whatever its handlers left behind.

A task that swallows its cancellation, or a thread that an async handler left (asyncio.to_thread),
would keep the event loop, and with it the process, for ever, although its job was handed back and
runs elsewhere.
"""

import asyncio
import os

from pgq.runner.executor import Executor
from pgq.worker import log

PATIENCE = 1.0
"""Seconds for what was left behind to end."""


async def leave(executor: Executor, exit_code: int) -> None:
    """Return when nothing is left behind; else end the process with this code."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    threads = [asyncio.wrap_future(future) for future in list(executor.open)]
    left = {*tasks, *threads}
    if left:
        _, left = await asyncio.wait(left, timeout=PATIENCE)
    if left:
        log.warning("the process ends, so that what handlers left behind does", left=len(left))
        log.flush(PATIENCE)
        os._exit(exit_code)
