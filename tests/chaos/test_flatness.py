"""What counts as flat."""

from dataclasses import replace

import pytest

from tests.chaos.flatness import Sample, count_trend, growing, memory_trend, trends

STEADY = Sample(
    at=0.0, memory=50_000, peak=60_000, threads=9, descriptors=20, children=0, connections=3
)


def series(count: int = 100) -> list[Sample]:
    """The same, a sample a second."""
    return [replace(STEADY, at=float(second)) for second in range(count)]


def test_what_stays_the_same_is_flat() -> None:
    found = trends(series(), warm_up=10)
    assert growing({"worker": found}) == []
    assert [trend.measure for trend in found] == [
        "memory", "threads", "descriptors", "children", "connections",
    ]  # fmt: skip


@pytest.mark.parametrize(("factor", "flat"), [(1.04, True), (1.06, False), (0.5, True)])
def test_memory_may_end_a_twentieth_higher(factor: float, flat: bool) -> None:
    values = [50_000 * (1 + (factor - 1) * second / 95) for second in range(101)]
    assert memory_trend(values).flat is flat


def test_a_slow_leak_of_descriptors_is_named() -> None:
    leaking = [
        replace(sample, descriptors=20 + int(sample.at) // 30, tasks=5) for sample in series()
    ]
    found = trends(leaking, warm_up=10)
    assert growing({"worker": found}) == ["worker: descriptors grew from 20 to 23"]


def test_a_burst_is_no_leak() -> None:
    values = [9.0] * 50 + [90.0] + [9.0] * 50
    assert count_trend("threads", values).flat
    assert not count_trend("threads", [*values, *[12.0] * 20]).flat


def test_what_grows_in_the_warm_up_alone_is_flat() -> None:
    warming = [replace(sample, memory=min(50_000, 30_000 + 2000 * int(sample.at)))
               for sample in series()]  # fmt: skip
    assert growing({"worker": trends(warming, warm_up=10)}) == []
    assert growing({"worker": trends(warming, warm_up=0)}) != []


def test_a_run_that_is_too_short_says_so() -> None:
    with pytest.raises(ValueError, match="longer"):
        trends(series(5), warm_up=10)
