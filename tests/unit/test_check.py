"""What no job can be, said before anything is sent."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pydantic
import pytest

from pgq.client import check
from pgq.errors import PayloadError, UsageError
from pgq.model import NewJob
from pgq.text import MAX_DURATION

ZERO, SECOND = timedelta(0), timedelta(seconds=1)
EAST = timezone(timedelta(hours=5, minutes=30))


@dataclass
class Mail:
    to: str
    tags: list[str]


class Order(pydantic.BaseModel):
    number: int
    at: datetime


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({}, "{}"),
        ({"to": "ann", "n": 1}, '{"to": "ann", "n": 1}'),
        ({"é": "日本"}, '{"é": "日本"}'),
        (Mail("ann", ["a"]), '{"to": "ann", "tags": ["a"]}'),
        (
            Order(number=1, at=datetime(2030, 1, 1, tzinfo=UTC)),
            '{"number": 1, "at": "2030-01-01T00:00:00Z"}',
        ),
        ({"mail": Mail("ann", [])}, '{"mail": {"to": "ann", "tags": []}}'),
    ],
)
def test_a_payload_becomes_json_text(payload: Any, text: str) -> None:
    assert check(NewJob("mail", payload)) == text


@pytest.mark.parametrize(
    "job",
    [
        NewJob("k" * 200, queue="q" * 200, unique_key="u" * 500),
        NewJob("ä kind with spaces; and 'quotes' [/]"),
        NewJob("好" * 200),
        NewJob("k", priority=32767, max_attempts=1),
        NewJob("k", priority=-32768, max_attempts=1_000_000),
        NewJob("k", delay=ZERO, timeout=timedelta(microseconds=1)),
        NewJob("k", delay=MAX_DURATION, timeout=timedelta(days=3650)),
        NewJob("k", scheduled_at=datetime(1900, 1, 1, tzinfo=UTC)),
        NewJob("k", scheduled_at=datetime(9998, 12, 31, tzinfo=EAST)),
        NewJob("k", {"text": "x" * 20_000}),
    ],
)
def test_what_a_job_can_be_is_accepted(job: NewJob) -> None:
    check(job)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"kind": ""}, "kind: give 1 to 200 characters, not 0"),
        ({"kind": "k" * 201}, "kind: give 1 to 200 characters, not 201"),
        ({"kind": None}, "kind: must be text, not NoneType"),
        ({"kind": b"k"}, "kind: must be text, not bytes"),
        ({"kind": "a\0b"}, "a NUL character"),
        ({"kind": "a\ud800"}, "a lone surrogate"),
        ({"queue": ""}, "queue: give 1 to 200 characters"),
        ({"queue": "q" * 201}, "queue: give 1 to 200 characters"),
        ({"queue": "q\0"}, "a NUL character"),
        ({"unique_key": ""}, "unique key: give 1 to 500 characters"),
        ({"unique_key": "u" * 501}, "unique key: give 1 to 500 characters"),
        ({"unique_key": "\0"}, "a NUL character"),
        ({"unique_key": 7}, "unique key: must be text, not int"),
        ({"priority": 32768}, "priority: give a whole number from -32768 to 32767"),
        ({"priority": -32769}, "priority: give a whole number from -32768 to 32767"),
        ({"priority": True}, "priority: give a whole number"),
        ({"priority": 1.5}, "priority: give a whole number"),
        ({"priority": None}, "priority: give a whole number"),
        ({"max_attempts": 0}, "max_attempts: give a whole number from 1 to 1000000"),
        ({"max_attempts": 1_000_001}, "max_attempts: give a whole number"),
        ({"max_attempts": 3.0}, "max_attempts: give a whole number"),
        ({"delay": -SECOND}, "delay: give a duration from 0 to 36500 days"),
        ({"delay": timedelta.max}, "delay: give a duration from 0 to 36500 days"),
        ({"delay": ZERO, "scheduled_at": datetime(2030, 1, 1, tzinfo=UTC)}, "not both"),
        ({"timeout": ZERO}, "timeout: give a duration above 0 and at most 3650 days"),
        ({"timeout": -SECOND}, "timeout: give a duration above 0"),
        ({"timeout": timedelta(days=3651)}, "timeout: give a duration above 0"),
        ({"scheduled_at": datetime(2030, 1, 1)}, "has no zone: add Z for UTC"),  # noqa: DTZ001
        ({"scheduled_at": datetime(1899, 12, 31, tzinfo=UTC)}, "between the years 1900 and 9998"),
        ({"scheduled_at": datetime(9999, 1, 1, tzinfo=UTC)}, "between the years 1900 and 9998"),
        ({"scheduled_at": datetime.max.replace(tzinfo=timezone(-SECOND))}, "out of range"),
    ],
)
def test_what_no_job_can_be_is_named(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as refused:
        check(NewJob(**{"kind": "k", **fields}))

    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("payload", "path", "problem"),
    [
        ({"a": {"b": ["x", "\0"]}}, "$.a.b[1]", "a NUL character"),
        ({"list": [{"a\0": 1}]}, "$.list[0], key 'a\\x00'", "a NUL character"),
        ({"a": ("x", "\ud800")}, "$.a[1]", "a lone surrogate"),
        ({"a": float("nan")}, "$.a", "NaN is no JSON number"),
        ({"a": {"b": float("inf")}}, "$.a.b", "beyond the range of a double"),
        ({"a": -(10**309)}, "$.a", "beyond the range of a double"),
        ({"a": 10**5000}, "$.a", "beyond the range of a double"),
        ({"a": datetime(2030, 1, 1, tzinfo=UTC)}, "$.a", "a value of type datetime is no JSON"),
        ({"a": b"x"}, "$.a", "a value of type bytes is no JSON"),
        ({"a": Mail("\0", [])}, "$.a", "a NUL character"),
        ({b"a": 1}, "$", "a key of type bytes is no JSON"),
        ([1], "", "must be a JSON object, not an array"),
        ("x", "", "must be a JSON object, not a string"),
        (None, "", "must be a JSON object, not null"),
        (7, "", "must be a JSON object, not a number"),
    ],
)
def test_a_payload_that_cannot_be_stored_is_refused_with_its_place(
    payload: Any, path: str, problem: str
) -> None:
    with pytest.raises(PayloadError, match=r"^payload: ") as refused:
        check(NewJob("k", payload))

    assert refused.value.path == path
    assert problem in str(refused.value)


def test_a_payload_that_contains_itself_is_refused() -> None:
    payload: dict[str, Any] = {}
    payload["self"] = [payload, payload]

    with pytest.raises(PayloadError, match="nested too deeply"):
        check(NewJob("k", payload))
