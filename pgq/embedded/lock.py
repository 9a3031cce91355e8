"""One process at a time starts or stops a private server."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from pgq.embedded.layout import Layout
from pgq.errors import Unavailable

# Longer than a start or a stop may take.
PATIENCE = timedelta(seconds=150)
PAUSE = timedelta(milliseconds=20)


@contextmanager
def held(layout: Layout) -> Iterator[None]:
    """Hold the lock of this server; the kernel frees it when the process ends, however it ends.

    The descriptor is not inherited by programs started meanwhile, so a running server never
    holds it. Raises Unavailable when another process keeps it too long.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(layout.lock, flags, 0o600)
    try:
        _take(descriptor, layout)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, layout: Layout) -> None:
    deadline = time.monotonic() + PATIENCE.total_seconds()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"another process has held {layout.lock} for {PATIENCE.seconds} s, starting "
                    "or stopping the server: try again when it is done, or end it"
                ) from None
            time.sleep(PAUSE.total_seconds())
        else:
            return
