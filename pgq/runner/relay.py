"""Passes on what child processes write to the worker's own stderr, and never waits for it."""

import os
import select
import threading

_STDERR = 2
_ATOMIC = 4096
"""Bytes that a pipe which is ready takes at once."""

_lock = threading.Lock()


def relay(chunk: bytes) -> None:
    """Write as much as goes without waiting: a reader that stopped must not hold a job up."""
    with _lock:
        for start in range(0, len(chunk), _ATOMIC):
            try:
                _, ready, _ = select.select([], [_STDERR], [], 0)
                if not ready:
                    return
                os.write(_STDERR, chunk[start : start + _ATOMIC])
            except (OSError, ValueError):
                return
