"""Judging, while no beat gets through, whether others may take this worker for dead.

While nobody can work where the database should be, they cannot, and the jobs go on. A running
server that does not let the worker in lets others declare it dead after 4 seconds, its lock being
gone; a network that is cut leaves the lock, and then they may after the visibility timeout. In both
cases what runs is given up before.
"""

import threading
from collections.abc import Callable
from datetime import timedelta

from pgq.reach import Reach
from pgq.runner.interrupt import clock

SHUT_OUT = 3.0
"""Seconds without a beat, while a server runs: others may declare us dead after 4."""

MARGIN = 5.0
"""Seconds before the end of the visibility timeout at which an unheard worker stops its jobs."""

FRESH = 20.0
"""Seconds for which it holds that nobody could work there: more than a round of attempts takes."""

LOOK = 0.5
"""Seconds at least between two looks."""

LONGEST_LOOK = 2.0

LATE = 2.0
"""Seconds by which a look comes too late to judge by it: nothing here ran meanwhile."""


class Vigil:
    """Knows when this worker was heard last."""

    def __init__(self, forfeit: Callable[[str], None]) -> None:
        """`forfeit` ends what runs, and is told why; called from any thread."""
        self._forfeit = forfeit
        self._heard_at = clock()
        self._forgiven = 60.0
        self._over = False
        """Whether the jobs were given up since the last beat."""
        self._closed_at = -FRESH
        """When it was last seen that nobody can work there."""

    def heard(self, at: float, *, forgiven: timedelta | None = None) -> None:
        """A beat that was sent at this time was answered; silence is forgiven for so long.

        None: for as long as was said last.
        """
        if forgiven is not None:
            self._forgiven = forgiven.total_seconds()
        self._heard_at, self._over = at, False

    @property
    def silent(self) -> float:
        """Seconds since the last beat."""
        return clock() - self._heard_at

    def due_in(self) -> float:
        """Seconds until it is time to look what stands there; 0 if it is, or was."""
        return max(0.0, SHUT_OUT - self.silent)

    def judge(self, look: Callable[[], Reach], *, pooled: bool) -> None:
        """No beat gets through: see what stands there, and give up what runs if need be.

        `pooled`: no lock is held, so that only the visibility timeout counts.
        """
        if self._over or self.due_in() > 0:
            return
        found = look()
        if found is Reach.CLOSED:
            self._closed_at = clock()
        elif found is Reach.REFUSED and not pooled:
            self._give_up("a running server does not let this worker in")

    def watch(self, stop: threading.Event) -> None:
        """Give up what runs before the visibility timeout is over; in a thread of its own.

        The thread that beats may be held up: connecting takes seconds a host, a resolver what it
        likes.
        """
        due = clock() + LOOK
        while not stop.wait(max(0.0, due - clock())):
            now = clock()
            # After a time in which nothing here ran, a beat is sent first: its stand-in may have
            # beaten for this worker, and others may have stood still with it.
            awake = now - due < LATE
            if awake and self._left() <= 0 and now - self._closed_at > FRESH:
                self._give_up(f"not heard for {self.silent:.0f} s")
            due = now + (min(max(self._left(), LOOK), LONGEST_LOOK) if awake else LONGEST_LOOK)

    def _left(self) -> float:
        return self._forgiven - min(MARGIN, self._forgiven / 5) - self.silent

    def _give_up(self, why: str) -> None:
        if not self._over:
            self._over = True
            self._forfeit(why)
