"""The handlers that the benchmarks run."""

import os
import time
from pathlib import Path

import pgq

app = pgq.App()


@app.job("noop")
async def noop(n: int) -> None:
    """Do nothing, on the event loop."""


@app.job("noop_thread")
def noop_thread(n: int) -> None:
    """Do nothing, in a thread."""


@app.job("stamp")
async def stamp(sent: float) -> None:
    """Write down how long ago the enqueue began, in milliseconds."""
    _note((time.time() - sent) * 1000)


def _note(milliseconds: float) -> None:
    with Path(os.environ["PGQ_BENCH_STAMPS"]).open("a") as stamps:
        stamps.write(f"{milliseconds}\n")
