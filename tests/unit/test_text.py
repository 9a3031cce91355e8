"""Text for people and for the database."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from pgq.errors import PayloadError, UsageError
from pgq.text import (
    as_object,
    dump_json,
    format_duration,
    format_time,
    load_object,
    parse_duration,
    parse_time,
    safe,
    safe_lines,
)

HOSTILE = "\x1b[2J\x1b]0;title\x07\r\n\t\x00\x7f\x85\x9b\u202e\u2066\u2028\u200b\ufeff\ud800"


def test_safe_text_is_one_line_of_visible_characters() -> None:
    shown = safe(f"Zoë {HOSTILE} 日本 🙂 [/foo]")
    assert shown.startswith("Zoë \\x1b[2J\\x1b]0;title\\x07\\r\\n\\t\\x00\\x7f\\x85\\x9b\\u202e")
    assert shown.endswith("\\ud800 日本 🙂 [/foo]")
    assert shown.isprintable()


def test_safe_lines_keep_their_breaks_and_nothing_else() -> None:
    assert safe_lines("a\r\nb\rc\n\td\x1b") == "a\nb\\rc\n        d\\x1b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", timedelta(seconds=90)),
        ("0.5s", timedelta(milliseconds=500)),
        ("5m", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
        (" 1h30m ", timedelta(minutes=90)),
        ("1d2h3m4s", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("0s", timedelta(0)),
    ],
)
def test_a_duration_is_read(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text", ["", " ", "5", "-5m", "5 m", "m", "30m1h", "1e3s", "٣s x", "36501d"]
)
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"90s, 5m, 2h|at most 36500d"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["90s", "1m30s", "2h", "1d12h", "0.25s", "0s", "1h5s"])
def test_a_duration_is_written_the_way_it_is_read(text: str) -> None:
    assert parse_duration(format_duration(parse_duration(text))) == parse_duration(text)


def test_a_negative_duration_is_written_with_its_sign() -> None:
    assert format_duration(timedelta(minutes=-5)) == "-5m"


def test_a_time_needs_a_zone_and_is_written_in_utc() -> None:
    instant = parse_time("2030-01-31T08:00:00.5+02:00")
    assert instant == datetime(2030, 1, 31, 6, 0, 0, 500_000, tzinfo=UTC)
    assert format_time(instant) == "2030-01-31T06:00:00.500Z"
    assert parse_time("2030-01-31T08:00Z").utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "text", ["2030-01-31T08:00:00", "2030-01-31", "tomorrow", "", "0001-01-01T00:00:00+14:00"]
)
def test_a_time_without_a_zone_or_a_meaning_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="time"):
        parse_time(text)


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        ({"a": "x\0y"}, "$.a", "NUL"),
        ({"a": [1, {"b\0": 2}]}, "$.a[1], key", "NUL"),
        ({"a": "\ud800"}, "$.a", "lone surrogate"),
        ({"a": float("nan")}, "$.a", "NaN"),
        ({"a": [float("-inf")]}, "$.a[0]", "beyond"),
        ({"a": 10**400}, "$.a", "beyond"),
        ({"a": {1, 2}}, "$.a", "type set"),
        ({(1, 2): 3}, "$", "key of type tuple"),
    ],
)
def test_what_postgresql_cannot_hold_is_named_with_its_place(
    value: object, path: str, problem: str
) -> None:
    with pytest.raises(PayloadError) as refused:
        dump_json(value)
    assert refused.value.path.startswith(path)
    assert problem in str(refused.value)


def test_a_payload_nested_beyond_reach_is_refused() -> None:
    value: Any = {}
    for _ in range(100_000):
        value = {"a": value}
    with pytest.raises(PayloadError, match="nested too deeply"):
        dump_json(value)


def test_text_that_only_looks_dangerous_is_kept() -> None:
    value = {"escaped": "\\u0000", "long": "9" * 400, "emoji": "🙂", "quote": "'\"\\"}
    assert json.loads(dump_json(value)) == value


@dataclass
class Order:
    number: int


def test_a_dataclass_stands_for_an_object() -> None:
    assert dump_json(as_object(Order(7))) == '{"number": 7}'


@pytest.mark.parametrize("value", [None, 1, "a", [1], True, object()])
def test_a_payload_must_be_an_object(value: object) -> None:
    with pytest.raises(PayloadError, match="must be a JSON object, not"):
        as_object(value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("{'a': 1}", "not JSON: .* at column 2"),
        ('{\n"a": }', "line 2 column 6"),
        ("[1]", "must be a JSON object, not an array"),
        ("null", "must be a JSON object, not null"),
        ("9" * 5000, "a number too long"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_text_that_is_no_json_object_is_refused(text: str, problem: str) -> None:
    with pytest.raises(PayloadError, match=problem):
        load_object(text)


def test_a_zone_is_kept_apart_from_the_instant() -> None:
    east = datetime(2030, 1, 1, 9, tzinfo=timezone(timedelta(hours=9)))
    assert format_time(east) == "2030-01-01T00:00:00.000Z"
