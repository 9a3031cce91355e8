"""What of a worker cannot do its work now, for its row in pgq.workers."""

from collections.abc import Sequence

from pgq.runner.interrupt import clock
from pgq.text import storable
from pgq.worker.claim import ClaimLoop
from pgq.worker.crew import Crew
from pgq.worker.finish import FinishLoop
from pgq.worker.link import ANSWER

BLOCKED = 3.0
"""Seconds after which an event loop that does not answer is blocked."""

FAILING = 5.0
"""Seconds for which the calls of a loop have failed before it is trouble."""

MAX_TROUBLE = 500


class Health:
    """Looks at the loops of one worker; asked from the thread of the heartbeat."""

    def __init__(
        self, crew: Crew, claiming: ClaimLoop, finishing: FinishLoop, *, poll: float
    ) -> None:
        self._crew = crew
        self._claiming = claiming
        self._finishing = finishing
        self._still = poll + 2 * ANSWER
        self.ticked_at = clock()
        """When the event loop last showed that it runs."""

    def trouble(self) -> str | None:
        """One line, or None if all is well."""
        found = self._found(clock())
        return storable("; ".join(found), MAX_TROUBLE) if found else None

    def _found(self, now: float) -> Sequence[str]:
        found = []
        blocked = now - self.ticked_at
        if blocked > BLOCKED:
            found.append(f"an async handler has blocked the event loop for {blocked:.0f} s")
        else:
            still = now - self._claiming.turned_at
            if still > self._still and not self._claiming.stopped:
                found.append(f"the claim loop has stood still for {still:.0f} s")
        for link in (self._claiming.link, self._finishing.link):
            failing = link.trouble(now)
            if failing is not None and failing[0] > FAILING:
                found.append(f"{link.name} has not worked for {failing[0]:.0f} s: {failing[1]}")
        stubborn = self._crew.stubborn()
        if stubborn:
            some = ", ".join(str(job.id) for job in stubborn[:5])
            found.append(f"{len(stubborn)} jobs do not stop and keep their slots: {some}")
        if self._finishing.refused:
            found.append(f"the database refuses the outcome of {self._finishing.refused} jobs")
        return found
