"""What of a worker cannot do its work now: for its row in pgq.workers, and for its log."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pgq.runner.interrupt import clock
from pgq.text import storable
from pgq.worker import log
from pgq.worker.claim import ClaimLoop
from pgq.worker.crew import Crew
from pgq.worker.finish import FinishLoop
from pgq.worker.link import ANSWER

BLOCKED = 3.0
"""Seconds after which an event loop that does not answer is blocked."""

LATE = 0.5
"""Seconds after which it is late; one that is blocked was found late so long before, too."""

FAILING = 5.0
"""Seconds for which the calls of a loop have failed before it is trouble."""

MAX_TROUBLE = 500


class Trouble(NamedTuple):
    """One thing that does not work."""

    kind: str
    """The same for as long as it is the same trouble; the text counts seconds."""
    text: str
    said: bool = False
    """Whether the log has a line of its own about it."""


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
        self._late = (0.0, 0.0)
        """The last of these that was found late, and when that was found first."""
        self._known: frozenset[str] = frozenset()
        self._warned = False

    def trouble(self) -> str | None:
        """One line, or None if all is well; a change of it is logged."""
        found = [*self._found(clock())]
        self._log(found)
        return storable("; ".join(one.text for one in found), MAX_TROUBLE) if found else None

    def _log(self, found: Sequence[Trouble]) -> None:
        """Say what is new, and once that it is over; not again what has a line of its own."""
        news = [one.text for one in found if one.kind not in self._known and not one.said]
        self._known = frozenset(one.kind for one in found)
        if news:
            log.warning("in trouble", trouble="; ".join(news))
            self._warned = True
        elif self._warned and not found:
            log.info("out of trouble")
            self._warned = False

    def _found(self, now: float) -> Iterator[Trouble]:
        silent = now - self.ticked_at
        if silent > LATE and self._late[0] != self.ticked_at:
            self._late = (self.ticked_at, now)
        if silent <= BLOCKED:
            yield from self._of_loops(now)
        elif now - self._late[1] > LATE:  # else this process, or its host, was suspended
            yield self._blocked(silent)
        stubborn = self._crew.stubborn()
        if stubborn:
            some = ", ".join(str(job.id) for job in stubborn[:5])
            one = len(stubborn) == 1
            what = "does not stop and keeps its slot" if one else "do not stop and keep their slots"
            yield Trouble("stubborn", f"{_jobs(len(stubborn))} {what}: {some}", said=True)
        refused = self._finishing.refused
        if refused:
            text = f"the database refuses the outcome of {_jobs(refused)}"
            yield Trouble("refused", text, said=True)

    def _blocked(self, silent: float) -> Trouble:
        job = self._crew.blocking()
        who = "an async handler" if job is None else f"job {job.id} ({job.kind})"
        text = f"{who} has blocked the event loop for {silent:.0f} s"
        return Trouble(f"blocked by {who}", text)

    def _of_loops(self, now: float) -> Iterator[Trouble]:
        """What keeps single loops from working while the event loop runs."""
        still = now - self._claiming.turned_at
        if still > self._still and not self._claiming.stopped:
            yield Trouble("still", f"the claim loop has stood still for {still:.0f} s")
        for link in (self._claiming.link, self._finishing.link):
            failing = link.trouble(now)
            if failing is not None and failing[0] > FAILING:
                text = f"{link.name} has not worked for {failing[0]:.0f} s: {failing[1]}"
                yield Trouble(link.name, text, said=link.said)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
