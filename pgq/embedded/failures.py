"""What went wrong, in one line that says how to go on. PURE.

PostgreSQL's programs report in words alone when they do not start; the server's account has the
C locale, so those words are the same everywhere.
"""

import errno
import re

from pgq.embedded.layout import HOME_VARIABLE, Layout
from pgq.errors import Unavailable

CAUSE = re.compile(r"(?:FATAL|PANIC|error): +(.+)")
# The first fragment found in a cause decides; "shared memory" is above the disk because a full
# /dev/shm or an exhausted table of segments is reported as "No space left on device" too.
ORPHANS = "pre-existing shared memory block"
REMEDIES = (
    (
        ORPHANS,
        "processes of a killed server are still at work: end them, then start again",
    ),
    ("Cannot allocate memory", "free some memory, then start again"),
    (
        "shared memory",
        "end other servers, or allow more of it (docker run --shm-size, sysctl kernel.shmmni)",
    ),
    ("semaphore", "end other servers, or raise the limit (sysctl kernel.sem)"),
    ("No space left on device", "free some space on the disk of {home}, then start again"),
    ("Disk quota exceeded", "free some of your quota on the disk of {home}, then start again"),
    ("Read-only file system", "make the disk of {home} writable, then start again"),
)
WRITES = {
    errno.ENOSPC: "free about 100 MB on that disk",
    errno.EDQUOT: "free about 100 MB of your quota on that disk",
}


def cause(words: str) -> str:
    """The first fatal message in the words of a PostgreSQL program, else their last line."""
    if found := CAUSE.search(words):
        return found[1].strip()
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def not_made(reason: str, layout: Layout) -> Unavailable:
    """initdb failed."""
    remedy = _remedy(reason, layout) or "nothing was kept of it; start again once that is solved"
    return Unavailable(f"cannot make the data folder {layout.data}: {reason}; {remedy}")


def not_started(reason: str, layout: Layout) -> Unavailable:
    """The server ended before it took connections."""
    remedy = _remedy(reason, layout) or f"the log has more: {layout.log}"
    return Unavailable(f"the private PostgreSQL does not start: {reason}; {remedy}")


def not_written(error: OSError, layout: Layout) -> Unavailable:
    """A folder or file could not be made, read or written."""
    where = error.filename or layout.home
    remedy = WRITES.get(error.errno or 0, f"set {HOME_VARIABLE} to a folder of your own")
    return Unavailable(f"cannot use {where}: {error.strerror}; {remedy}")


def _remedy(reason: str, layout: Layout) -> str | None:
    for fragment, remedy in REMEDIES:
        if fragment in reason:
            return remedy.format(home=layout.home)
    return None
