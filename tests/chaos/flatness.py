"""Whether what a worker holds stays the same for as long as it works. Pure.

The first tenth of the time after the warm-up is compared with the last one, by their medians: a
leak shows, a burst does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

SHARE = 10
"""What is compared is one part in so many, at each end."""

MEMORY = 1.05
"""How much of its first memory a worker may hold in the end."""

COUNTED = ("threads", "descriptors", "children", "connections", "tasks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a worker held at one moment; memory in kB."""

    at: float
    """Seconds since the workers were started."""
    memory: int
    peak: int
    threads: int
    descriptors: int
    children: int
    connections: int
    tasks: int | None = None
    """Tasks of its event loop; None: nobody could ask."""


@dataclass(frozen=True, slots=True)
class Trend:
    """One measure, at both ends of a run."""

    measure: str
    first: float
    last: float
    most: float
    """At any time after the warm-up."""
    flat: bool


def trends(samples: Sequence[Sample], *, warm_up: float) -> list[Trend]:
    """The measures of one worker; those that it does not have are left out."""
    warm = [sample for sample in samples if sample.at >= warm_up]
    found = [memory_trend([sample.memory for sample in warm])]
    for measure in COUNTED:
        values = [getattr(sample, measure) for sample in warm]
        if None not in values:
            found.append(count_trend(measure, values))
    return found


def memory_trend(values: Sequence[float]) -> Trend:
    """Flat within a twentieth."""
    first, last = ends(values)
    flat = median(last) <= MEMORY * median(first)
    return Trend("memory", median(first), median(last), max(values), flat)


def count_trend(measure: str, values: Sequence[float]) -> Trend:
    """Flat when the last values are, by their median, no more than the first ones ever were."""
    first, last = ends(values)
    return Trend(measure, median(first), median(last), max(values), median(last) <= max(first))


def ends(values: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """The first and the last tenth, one value at least."""
    if not values:
        raise ValueError("nothing was sampled after the warm-up: let it run for longer")
    size = max(1, len(values) // SHARE)
    return values[:size], values[-size:]


def growing(found: Mapping[str, Sequence[Trend]]) -> list[str]:
    """What is not flat, by worker, in words."""
    return [
        f"{worker}: {trend.measure} grew from {trend.first:g} to {trend.last:g}"
        for worker, series in found.items()
        for trend in series
        if not trend.flat
    ]
