"""Lifelines: how a test knows that a process, with all that it started, is gone.

A process identifier does not tell: a dead process keeps its until somebody buries it. A named
pipe does: whoever inherits its writing end holds it, and the reader sees the last one let go.
"""

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.databases import PATIENCE


class Lifeline:
    """A named pipe that commands hold open: `exec 9>PATH`."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def heard(self) -> str:
        """Wait for a word of a holder; gives "" when the last holder is gone."""
        ready, _, _ = select.select([self._descriptor], [], [], PATIENCE)
        assert ready, "somebody still holds the lifeline"
        return os.read(self._descriptor, 4096).decode()

    def close(self) -> None:
        os.close(self._descriptor)


@contextmanager
def lifeline(path: Path) -> Iterator[Lifeline]:
    """A lifeline at this path."""
    made = Lifeline(path)
    try:
        yield made
    finally:
        made.close()
