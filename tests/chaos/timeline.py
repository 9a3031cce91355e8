"""Questions about a history: when a process was silent, able to help others, or gone. Pure.

Every answer errs on one side, and says on which: the judges excuse only what could really be so.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import TypeVar

from tests.chaos.history import (
    Execution,
    History,
    Killed,
    Outage,
    Process,
    Stopped,
    Terminated,
    Told,
)

E = TypeVar("E")

BEAT = 2.0
"""Seconds between two beats."""

SILENCE = 4.0
"""Silence after which a worker without its lock is dead."""

ELDER = 5.0
"""Age from which on a session may declare others dead."""

RECONNECT = 1.0
"""A lost heartbeat connection is back within this, once it can be."""

HEARS = 3.0
"""A worker that was declared dead has heard of it, and what it ran has ended, within this."""

SHUT_OUT = 3.0
"""Silence after which a worker may end its own jobs, lest others run them beside it."""

BLIND = 6.0
"""Silence of its own after which a worker must watch for a while before it judges others."""

LAG = 0.5
"""What a busy host may add to any of these."""


@dataclass(frozen=True, slots=True)
class Spell:
    """A time in which a process could not beat: stopped, its session ended, the server down."""

    start: float
    end: float
    stopped: bool
    """Whether the process itself stood still in it."""
    session_ended: float | None
    """When the server first dropped its session in it."""


class Timeline:
    """A history, indexed by process."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.processes = {process.name: process for process in history.processes}
        self.outages = sorted(_of(Outage, history.events), key=lambda outage: outage.at)
        self._killed: dict[str, float] = {}
        self._told: dict[str, float] = {}
        self._stops: dict[str, list[Stopped]] = defaultdict(list)
        for event in history.events:
            match event:
                case Killed(at=at, process=name):
                    self._killed[name] = min(at, self._killed.get(name, inf))
                case Told(at=at, process=name):
                    self._told[name] = min(at, self._told.get(name, inf))
                case Stopped(process=name):
                    self._stops[name].append(event)
                case _:
                    pass
        self._names = self._name_workers()
        self._spells = {name: self._find_spells(name) for name in self.processes}

    def _name_workers(self) -> dict[int, str]:
        by_pid: dict[int, list[Process]] = defaultdict(list)
        for process in self.history.processes:
            by_pid[process.pid].append(process)
        return {
            worker.id: process.name
            for worker in self.history.workers
            for process in by_pid[worker.pid]
            if process.began - LAG <= worker.started_at <= _or_inf(process.ended) + LAG
        }

    def process_of(self, worker_id: int | None) -> str | None:
        """The process that was this worker."""
        return None if worker_id is None else self._names.get(worker_id)

    def killed(self, process: str) -> float:
        """When it was killed; infinity: never, or it had ended by itself before."""
        at = self._killed.get(process, inf)
        ended = _or_inf(self.processes[process].ended)
        return at if at <= ended else inf

    def told(self, process: str) -> float:
        """When it was told to end; infinity: never."""
        return self._told.get(process, inf)

    def gone(self, process: str) -> float:
        """From when on it ran nothing."""
        return min(self.killed(process), _or_inf(self.processes[process].ended))

    def end(self, execution: Execution) -> float:
        """When an execution ended, at the latest with its process."""
        return self.gone(execution.process) if execution.end is None else execution.end

    def down(self, start: float, end: float) -> bool:
        """Whether the server was down at any moment between these."""
        return any(outage.at <= end and start <= outage.until for outage in self.outages)

    def unheard(self, process: str, start: float, end: float) -> bool:
        """Whether it may have ended its own jobs between these, since it could not be heard."""
        return any(
            spell.start <= end
            and start <= spell.end + HEARS
            and spell.end - spell.start + BEAT + LAG >= SHUT_OUT
            for spell in self._spells[process]
        )

    def unreachable(self, start: float, end: float) -> bool:
        """Whether a process that started between these may have failed to: it had no server."""
        cuts = _of(Terminated, self.history.events)
        cut = any(found.beats is None and start <= found.at <= end for found in cuts)
        return cut or self.down(start, end)

    def hindered(self, process: str, start: float, end: float) -> bool:
        """Whether anything kept a process from the server at any moment between these."""
        return any(spell.start <= end and start <= spell.end for spell in self._spells[process])

    def silences(self, process: str, *, by: float) -> list[Spell]:
        """The spells for which others may have declared this living process dead by then.

        It stood still, and for as long as the visibility timeout; or its session ended meanwhile,
        and it was silent for 4 seconds. That it may have been, not that it was.
        """
        return [
            spell
            for spell in self._spells[process]
            if spell.stopped and self._due(spell) <= min(by, spell.end + LAG)
        ]

    def might_die(self, process: str, at: float) -> bool:
        """Whether others may declare this living process dead at this moment."""
        return any(
            spell.stopped and self._due(spell) <= at <= spell.end + LAG
            for spell in self._spells[process]
        )

    def timed_out(self, spell: Spell) -> bool:
        """Whether a spell was long enough for the visibility timeout."""
        return spell.end - spell.start + BEAT + LAG >= self.history.rules.visibility

    def _due(self, spell: Spell) -> float:
        """The first moment at which a spell could make its process dead."""
        last_beat = spell.start - BEAT - LAG
        due = last_beat + self.history.rules.visibility
        if spell.session_ended is None or self.history.rules.pooled:
            return due
        return min(due, max(last_beat + SILENCE, spell.session_ended))

    def heard(self, process: str, spell: Spell) -> float:
        """When a process must know what happened in a spell: it was left alone for long enough."""
        at = spell.end
        for other in self._spells[process]:
            if other.end > at and other.start < at + HEARS:
                at = other.end
        return at + HEARS

    def helped(self, since: float, without: str) -> float:
        """When another process has been able to declare dead and to claim, for a beat and more.

        At `since` at the earliest; infinity if it never came to that.
        """
        looks = BEAT + 1.0
        ready = [
            max(since, start + looks)
            for name in self.processes
            if name != without
            for start, end in self._able(name)
            if max(since, start + looks) <= end
        ]
        return min(ready, default=inf)

    def stood_still(self, start: float, end: float) -> bool:
        """Whether any process was stopped, or had just been ended, between these."""
        stops = any(stop.at <= end and start <= stop.until for stop in self._all_stops())
        names = self.processes
        return stops or any(start - RECONNECT < self.gone(name) <= end for name in names)

    def _all_stops(self) -> Iterator[Stopped]:
        for stops in self._stops.values():
            yield from stops

    def _able(self, process: str) -> Iterator[tuple[float, float]]:
        """When a process could certainly declare others dead: undisturbed, its session old."""
        found = self.processes[process]
        start = _or_inf(found.ready) + ELDER + LAG
        last = min(self.gone(process), self.told(process))
        for spell in self._spells[process]:
            if spell.start > start:
                yield start, min(spell.start, last)
            start = max(start, spell.end + self._recovers(spell))
        yield start, last

    def _recovers(self, spell: Spell) -> float:
        """Seconds after a spell until its process can help others: its session may be a new one."""
        if spell.stopped and self.timed_out(spell):
            return HEARS + RECONNECT + ELDER + LAG  # it goes on as a new worker
        if spell.session_ended is not None:
            return RECONNECT + ELDER + LAG
        blind = spell.end - spell.start + BEAT + LAG >= BLIND
        return SILENCE + LAG if blind else LAG

    def _find_spells(self, process: str) -> list[Spell]:
        """What kept a process from beating; what comes close together is one spell.

        Through a pooler sessions are shared, and any backend's end may have been its own.
        """
        raw = [Spell(stop.at, stop.until, True, None) for stop in self._stops[process]]
        raw += [Spell(out.at, out.until, False, out.at) for out in self.outages]
        raw += [
            Spell(cut.at, cut.at + RECONNECT, False, cut.at)
            for cut in _of(Terminated, self.history.events)
            if cut.beats == process or (self.history.rules.pooled and cut.role != "handler")
        ]
        spells: list[Spell] = []
        for spell in sorted(raw, key=lambda spell: spell.start):
            if spells and spell.start <= spells[-1].end + RECONNECT:
                spells[-1] = _joined(spells[-1], spell)
            else:
                spells.append(spell)
        return spells


def _joined(first: Spell, second: Spell) -> Spell:
    ends = [end for end in (first.session_ended, second.session_ended) if end is not None]
    return Spell(
        first.start,
        max(first.end, second.end),
        first.stopped or second.stopped,
        min(ends, default=None),
    )


def _of(kind: type[E], events: Iterable[object]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def _or_inf(at: float | None) -> float:
    return inf if at is None else at
