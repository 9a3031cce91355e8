"""A short chaos run in every test run: everything is broken at least once, and nothing is lost."""

from pathlib import Path

import pytest

from tests.chaos import run
from tests.chaos.history import How, Killed, Outage, Stopped, Terminated, Told
from tests.chaos.invariants import judge


@pytest.mark.parametrize("pooled", [False, True], ids=["direct", "pooler"])
def test_nothing_is_lost_and_nothing_counts_twice_whatever_breaks(
    pooled: bool, tmp_path: Path
) -> None:
    # Other tests run beside this one: what is promised in seconds is judged by `make chaos`.
    options = run.Options(seconds=20, jobs=600, seed=3, pooled=pooled, every=1.6, patience=10)
    history, _ = run.run(options, tmp_path)
    verdict = judge(history)

    assert list(map(str, verdict.violations)) == []
    assert {type(event) for event in history.events} == {
        Killed, Outage, Stopped, Terminated, Told,
    }  # fmt: skip
    long = [event for event in history.events if isinstance(event, Stopped)]
    assert max(event.until - event.at for event in long) > history.rules.visibility
    assert len(history.orders) >= 600
    assert sum(found.how is How.DONE for found in history.executions) >= 500
    # A run in which nothing was interrupted shows nothing.
    assert sum(found.end is None for found in history.executions) > 0
    assert sum(found.outcome == "lost" for found in history.attempts) > 0
