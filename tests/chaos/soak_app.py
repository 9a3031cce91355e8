"""The handlers of the soak: each way to run jobs that there is, and one that counts tasks."""

import asyncio
import time

import pgq

app = pgq.App()


@app.job("coroutine")
async def coroutine(text: str) -> int:
    """Wait for a moment, as a handler that talks to a service does."""
    await asyncio.sleep(0.005)
    return len(text)


@app.job("thread")
def thread(text: str) -> int:
    """The same in a thread."""
    time.sleep(0.002)
    return len(text)


@app.job("raise")
async def fail(text: str) -> None:
    """Fail, so that tracebacks come and go too."""
    raise ValueError(text)


@app.job("count tasks")
async def count_tasks() -> int:
    """The tasks of the worker's event loop."""
    return len(asyncio.all_tasks())


@app.job("process", isolation="process")
def isolated(text: str) -> int:
    """The same in a process of its own."""
    return len(text)
