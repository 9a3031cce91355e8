"""How an event becomes a line."""

import json
import logging
from contextvars import copy_context
from typing import Any

import pytest

from pgq.runner.records import current
from pgq.runner.running import Running
from pgq.worker.log import JsonFormatter, TextFormatter
from tests.support.stage import job


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
        ("tab\tbed", r'"tab\tbed"'),
        ("line\nfeed", r'"line\nfeed"'),
        (r"no line\nfeed", r'"no line\\nfeed"'),
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


def test_a_record_of_the_application_is_an_event_whose_fields_cannot_be_taken_for_ours() -> None:
    made = record('paid\x1b[2J by "x"', job=7)
    made.name, made.msg, made.args = "shop", "%s", ('paid\x1b[2J by "x"',)

    line = TextFormatter().format(made)

    assert line == (
        r'2030-01-30T10:40:00.123Z warning log message="paid\x1b[2J by \"x\"" logger=shop'
    )
    assert json.loads(JsonFormatter().format(made))["event"] == "log"


def test_a_traceback_is_written_in_indented_lines_for_people() -> None:
    made = record("worker cannot go on", traceback="Traceback\n  File\nOSError: a\rb\n")

    assert TextFormatter().format(made).split("\n")[1:] == [
        "  Traceback", "    File", r"  OSError: a\rb"
    ]  # fmt: skip
    assert "\n" not in JsonFormatter().format(made)


def test_a_record_names_the_job_whose_handler_said_it_and_none_after_its_end() -> None:
    running = Running(job(7))

    def line() -> str:
        made = record("x")
        made.name, made.msg = "shop", "hello"
        return TextFormatter().format(made).partition("logger=")[2]

    def both() -> tuple[str, str]:
        current.set(running)
        during = line()
        running.over = True
        return during, line()

    assert copy_context().run(both) == ("shop job=7 kind=work", "shop")
    assert line() == "shop"
