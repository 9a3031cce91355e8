"""The checker: judges a history by every invariant, and counts what is legal but odd. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.chaos import accounts, deaths, overlaps, recovery
from tests.chaos.history import History
from tests.chaos.timeline import Timeline
from tests.chaos.violations import Violation


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a history comes to."""

    violations: tuple[Violation, ...]
    overlaps: Mapping[str, int]
    """Documented overlaps, by cause."""
    longest_overlap: float
    longest_awake: float
    """The longest one, counted without the time in which the earlier worker stood still."""
    repeats: Mapping[str, int]
    """Jobs executed again after they had been done, by cause: at least once, not exactly once."""
    recovery: recovery.Recovery


def judge(history: History) -> Verdict:
    """Judge a history."""
    timeline = Timeline(history)
    executed = overlaps.Judge(timeline)
    recovered = recovery.Judge(timeline)
    violations = (
        *accounts.check(history),
        *executed.check(),
        *deaths.check(timeline),
        *recovered.check(),
    )
    return Verdict(
        violations=violations,
        overlaps=_by_cause([found.cause for found in executed.overlaps]),
        longest_overlap=_longest(found.seconds for found in executed.overlaps),
        longest_awake=_longest(found.awake for found in executed.overlaps),
        repeats=_by_cause([found.cause for found in executed.repeats]),
        recovery=recovered.summary(),
    )


def _longest(seconds: Iterable[float]) -> float:
    return round(max(seconds, default=0.0), 3)


def _by_cause(causes: list[overlaps.Cause]) -> Mapping[str, int]:
    return dict(sorted(Counter(map(str, causes)).items()))
