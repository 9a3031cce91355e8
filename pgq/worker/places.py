"""Where a claimer starts to look: the places its last claims ended, a second behind now. Pure.

Dead index entries of finished jobs stay while any snapshot is held, and a look from the start
walks over all of them. From the remembered place it walks over the last second's. What becomes
visible behind a place (a transaction that took longer than a second) is found by the next full
look. sql/README.md has the figures.
"""

from datetime import UTC, datetime, timedelta

from pgq.calls.jobs import Look, Place

MEMORY = 16
"""Places remembered at most for a queue; what is forgotten is found by full looks."""

BEHIND = timedelta(seconds=1)
START = datetime(1900, 1, 1, tzinfo=UTC)


class Places:
    """The places of one claimer, by queue and priority."""

    def __init__(self, queues: list[str]) -> None:
        self._places: dict[str, dict[int, tuple[datetime, int]]] = {queue: {} for queue in queues}
        self._known = False

    def next(self) -> list[Place] | None:
        """Where to look now, in order of queue and priority; None: only a full look will do."""
        if not self._known:
            return None
        return [
            Place(queue, priority, *places[priority])
            for queue, places in self._places.items()
            for priority in sorted(places, reverse=True)
        ]

    def queues(self) -> list[str]:
        """The queues in the order to look."""
        return list(self._places)

    def rotate(self) -> None:
        """Let the next queue go first, so that a long one does not starve the others."""
        first = next(iter(self._places))
        self._places[first] = self._places.pop(first)

    def note(self, look: Look, *, full: bool, limit: int) -> None:
        """Remember where a look over these places ended."""
        behind = look.at - BEHIND
        exhausted = len(look.jobs) < limit
        last = look.jobs[-1] if look.jobs else None
        if full:
            for job in look.jobs:
                self._remember(job.queue, job.priority, (behind, 0))
            for places in self._places.values():
                if not places:
                    places[0] = (behind, 0) if exhausted else (START, 0)
            self._known = True
        for queue, places in self._places.items():
            for priority in sorted(places, reverse=True):
                ended_here = last is not None and (queue, priority) == (last.queue, last.priority)
                if last is not None and ended_here and not exhausted:
                    places[priority] = min((last.scheduled_at, last.id), (behind, 0))
                    return
                places[priority] = (behind, 0)

    def _remember(self, queue: str, priority: int, place: tuple[datetime, int]) -> None:
        places = self._places[queue]
        if priority not in places and len(places) >= MEMORY:
            del places[min(places)]
        places[priority] = place
