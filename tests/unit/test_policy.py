"""The wait before a retry, where a handler chooses it."""

from datetime import timedelta
from typing import Any

import pytest

from pgq.errors import UsageError
from pgq.policy import RetryPolicy, check_retry, retry_delay
from pgq.text import MAX_DURATION

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


@pytest.mark.parametrize("attempt", [1, 2, 31, 1024, 2**31])
def test_without_a_policy_the_database_decides(attempt: int) -> None:
    assert retry_delay(None, attempt) is None


@pytest.mark.parametrize("attempt", [1, 2, 1024])
def test_a_constant_wait_is_that_for_every_attempt(attempt: int) -> None:
    assert retry_delay(MINUTE, attempt) == MINUTE


@pytest.mark.parametrize(
    ("attempt", "expected"), [(1, SECOND), (2, MINUTE), (3, HOUR), (4, HOUR), (10**6, HOUR)]
)
def test_the_last_wait_of_a_list_repeats(attempt: int, expected: timedelta) -> None:
    assert retry_delay([SECOND, MINUTE, HOUR], attempt) == expected


def test_a_function_is_asked_with_the_number_of_the_failed_attempt() -> None:
    asked = []

    def policy(attempt: int) -> timedelta | None:
        asked.append(attempt)
        return attempt * MINUTE if attempt < 3 else None

    assert [retry_delay(policy, attempt) for attempt in (1, 2, 3)] == [MINUTE, 2 * MINUTE, None]
    assert asked == [1, 2, 3]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (timedelta(0), timedelta(0)),
        (-HOUR, timedelta(0)),
        (timedelta.min, timedelta(0)),
        (timedelta.max, MAX_DURATION),
    ],
)
def test_a_wait_is_kept_within_what_a_job_can_hold(given: timedelta, kept: timedelta) -> None:
    assert retry_delay(lambda _: given, 1) == kept


@pytest.mark.parametrize(
    "policy", [None, MINUTE, timedelta(0), [SECOND], (SECOND, MINUTE), lambda _: None]
)
def test_a_policy_that_can_give_a_wait_is_accepted(policy: RetryPolicy | None) -> None:
    check_retry(policy)


@pytest.mark.parametrize(
    "policy", [-SECOND, [], (), [SECOND, -SECOND], [1, 2], 60, 1.5, "5m", b"", {MINUTE}, True]
)
def test_a_policy_that_cannot_is_refused(policy: Any) -> None:
    with pytest.raises(UsageError, match=r"^retry: "):
        check_retry(policy)
