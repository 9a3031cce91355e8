"""How an event becomes a line."""

import json
import logging
from typing import Any

import pytest

from pgq.worker.log import JsonFormatter, TextFormatter


def record(event: str, **fields: Any) -> logging.LogRecord:
    made = logging.LogRecord("pgq.worker", logging.WARNING, "", 0, event, None, None)
    made.created = 1_896_000_000.1236
    made.fields = fields
    return made


def test_text_is_time_level_event_and_fields() -> None:
    line = TextFormatter().format(record("job failed", job=7, kind="mail", error="no luck"))

    assert line == '2030-01-30T10:40:00.123Z warning job failed job=7 kind=mail error="no luck"'


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("word", "word"),
        ("", '""'),
        ("two words", '"two words"'),
        ("a=b", '"a=b"'),
        ('say "x"', r'"say \"x\""'),
        ("back\\slash", r'"back\\slash"'),
        ("tab\tbed", r'"tab\x09bed"'),
        ("line\nfeed", r'"line\x0afeed"'),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\u202etxt", r"\u202etxt"),
        ("\ud800", r"\ud800"),
        (None, "None"),
        (0.5, "0.5"),
    ],
)
def test_a_value_is_one_word_or_in_quotes(value: object, written: str) -> None:
    assert TextFormatter().format(record("x", v=value)).split(" x v=")[1] == written


def test_json_is_one_object_with_the_values_as_they_are() -> None:
    line = JsonFormatter().format(record("job failed", job=7, error="line\nfeed \ud800"))

    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2030-01-30T10:40:00.123Z",
        "level": "warning",
        "event": "job failed",
        "job": 7,
        "error": "line\nfeed \ud800",
    }
