"""When the clock of a host is said to be wrong."""

from datetime import UTC, datetime, timedelta

import pytest

from pgq.worker.skew import skew

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("ahead", "took", "said"),
    [
        (10 * MINUTE, 0 * SECOND, 10 * MINUTE),
        (-10 * MINUTE, 0 * SECOND, -10 * MINUTE),
        (6 * SECOND, SECOND, 6 * SECOND),
        (5 * SECOND, 0 * SECOND, None),
        (-5 * SECOND, 0 * SECOND, None),
        # An answer that took 20 s may have been given at any moment of them.
        (14 * SECOND, 20 * SECOND, None),
        (16 * SECOND, 20 * SECOND, 16 * SECOND),
    ],
)
def test_a_clock_is_wrong_when_no_delay_explains_it(
    ahead: timedelta, took: timedelta, said: timedelta | None
) -> None:
    asked = NOON + ahead - took / 2

    assert skew(asked=asked, answer=NOON, heard=asked + took) == said
