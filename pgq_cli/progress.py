"""How far a long command is: a bar on a terminal, else a line now and then. On stderr."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from pgq_cli import console

PAUSE = 5.0
"""Seconds between two lines."""


@contextmanager
def progress(label: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """Show progress inside the block; what it gives is told of each step's size."""
    if total and sys.stderr.isatty():
        with typer.progressbar(length=total, label=f"{label:<10}", file=sys.stderr) as bar:
            yield bar.update
    else:
        yield _Lines(label, unit).advance


class _Lines:
    def __init__(self, label: str, unit: str) -> None:
        self._label, self._unit = label, unit
        self._done = 0
        self._due = time.monotonic() + PAUSE

    def advance(self, step: int) -> None:
        self._done += step
        if time.monotonic() >= self._due:
            console.talk(f"pgq: {self._label}: {self._done:,} {self._unit}")
            self._due = time.monotonic() + PAUSE
