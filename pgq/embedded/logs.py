"""The server's log: one file of the caller, given to the server open, kept small."""

import os
import shutil
from contextlib import suppress
from typing import IO

from pgq.embedded.layout import Layout

LIMIT = 1_000_000


def keep_small(layout: Layout) -> None:
    """Put a log that has grown aside, in place of the one put aside before.

    The server goes on writing to the same file, which is why it is copied and emptied, not
    renamed. A log that cannot be kept small stops nobody.
    """
    with suppress(OSError):
        if layout.log.stat().st_size > LIMIT:
            shutil.copyfile(layout.log, f"{layout.log}.1")
            os.truncate(layout.log, 0)


def open_end(layout: Layout) -> IO[bytes]:
    """The log, open for the server to append to."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.fdopen(os.open(layout.log, flags, 0o600), "ab", buffering=0)


def size(layout: Layout) -> int:
    """Where the next line will stand."""
    return layout.log.stat().st_size


def since(layout: Layout, place: int) -> str:
    """What was written from that place on."""
    with layout.log.open("rb") as log:
        log.seek(place)
        return log.read().decode(errors="replace")
