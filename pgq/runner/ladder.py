"""The ladder by which a running job is made to end: the mildest rung first. Pure."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from pgq.registry.app import Isolation


class Rung(StrEnum):
    """A way to end a running job."""

    FLAG = "its flag"
    """`job.cancelled` is set."""
    TASK = "cancellation"
    """CancelledError is raised in the handler."""
    TERM = "SIGTERM"
    """To the process group, grandchildren included."""
    KILL = "SIGKILL"
    """To the process group."""
    QUERIES = "cancelling its queries"
    """The statements that its own database connections run."""


LADDERS: Mapping[Isolation, Sequence[tuple[float, Rung]]] = {
    Isolation.ASYNC: ((0.0, Rung.TASK), (5.0, Rung.QUERIES), (5.0, Rung.TASK)),
    Isolation.THREAD: ((0.0, Rung.FLAG), (5.0, Rung.QUERIES)),
    Isolation.PROCESS: (
        (0.0, Rung.FLAG),
        (2.0, Rung.TERM),
        (7.0, Rung.KILL),
        (7.0, Rung.QUERIES),
    ),
    # A command cannot see a flag: SIGTERM is how it is asked.
    Isolation.COMMAND: ((0.0, Rung.TERM), (5.0, Rung.KILL), (5.0, Rung.QUERIES)),
}
"""The rungs of each way to run, with the seconds after the wish at which each is due."""

LONGEST = max(seconds for ladder in LADDERS.values() for seconds, _ in ladder)
"""Seconds after the wish at which all rungs have been taken."""

HURRY = 0.05
"""By which the times are shortened for a job that others run already, or soon."""
