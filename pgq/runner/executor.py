"""The threads of the event loop (asyncio.to_thread), which know whose work they do.

A thread goes on when the coroutine that waits for it is cancelled. So an async handler that was
told to stop has not stopped while a thread works for it. The worker has threads of its own: to
look up a host name, or to stop, it must not wait for handlers that keep all of theirs busy.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pgq.runner.records import current
from pgq.runner.running import Running

OWN = 4
"""Threads of the worker itself."""


class Executor(ThreadPoolExecutor):
    """The event loop's default executor."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="asyncio")
        self._own = ThreadPoolExecutor(OWN, thread_name_prefix="pgq-own")
        self.open: set[Future[Any]] = set()
        """What it still runs; changed by its threads too."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        running = current.get()
        submit = super().submit if running is not None else self._own.submit
        future = submit(fn, *args, **kwargs)
        self.open.add(future)
        future.add_done_callback(self.open.discard)
        if running is not None and not running.over:
            running.threads.append(future)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        self._own.shutdown(wait, cancel_futures=cancel_futures)
        super().shutdown(wait, cancel_futures=cancel_futures)


async def outlast(running: Running) -> None:
    """Wait until no thread works for this job any more, whatever is cancelled meanwhile."""
    while left := [future for future in running.threads if not future.done()]:
        try:
            await asyncio.wait([asyncio.wrap_future(future) for future in left])
        except asyncio.CancelledError:
            continue  # asked to stop once more: it cannot
