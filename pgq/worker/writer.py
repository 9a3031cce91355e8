"""Writing the log in a thread of its own.

A pipe that nobody reads, a terminal that is held (Ctrl-S), a slow collector: whoever writes there
waits for ever. The event loop and the heartbeat must not, so they only hand the line over.
"""

import os
import queue
import threading
from contextlib import suppress
from typing import TextIO

WAITING = 10_000
"""Lines that may wait for a reader; what comes then is lost, and counted."""


class Writer:
    """Writes lines to a stream in the order in which they come."""

    def __init__(self, stream: TextIO | None) -> None:
        """None: there is no stream (closed by whoever started us), and nothing is written."""
        self._stream = stream
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lines: queue.SimpleQueue[str | threading.Event] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lost = 0

    def write(self, line: str) -> None:
        """Have this line written; never waits, also in a signal handler."""
        if self._stream is None:
            return
        if self._lines.qsize() >= WAITING:
            self._lost += 1
            return
        self._lines.put(line)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pgq-log", daemon=True)
            with suppress(RuntimeError):  # no thread can be had now: with the next line
                self._thread.start()
                return
            self._thread = None

    def flush(self, seconds: float) -> None:
        """Wait until all lines so far are written, but no longer than this."""
        if self._thread is not None:
            written = threading.Event()
            self._lines.put(written)
            written.wait(seconds)

    def _run(self) -> None:
        while True:
            line = self._lines.get()
            if isinstance(line, threading.Event):
                line.set()
                continue
            self._put(line)
            lost, self._lost = self._lost, 0
            if lost:
                self._put(f"{lost} lines of the log were lost: nobody read them")

    def _put(self, line: str) -> None:
        assert self._stream is not None
        with suppress(OSError, ValueError):  # the terminal is gone, or the pipe's reader
            self._stream.write(f"{line}\n")
            self._stream.flush()
