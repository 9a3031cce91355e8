"""Jobs as lines of text."""

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgq.admin.lines import Lines, parse_line
from pgq.errors import UsageError
from pgq.model import NewJob


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_a_line_says_all_about_its_job() -> None:
    given = line(
        kind="send_email",
        payload={"to": "a@example.org"},
        queue="mail",
        priority=5,
        scheduled_at="2030-01-31T08:00:00+02:00",
        max_attempts=9,
        timeout="1m30s",
        unique_key="u",
    )
    assert parse_line(given, {}) == NewJob(
        "send_email",
        {"to": "a@example.org"},
        queue="mail",
        priority=5,
        scheduled_at=datetime(2030, 1, 31, 6, tzinfo=UTC),
        max_attempts=9,
        timeout=timedelta(seconds=90),
        unique_key="u",
    )


def test_what_a_line_leaves_out_or_null_comes_from_the_defaults() -> None:
    defaults: dict[str, Any] = {
        "kind": "a",
        "queue": "mail",
        "priority": 3,
        "delay": timedelta(minutes=1),
    }
    assert parse_line(b"{}", defaults) == NewJob(
        "a", {}, queue="mail", priority=3, delay=timedelta(minutes=1)
    )
    job = parse_line(line(queue=None, priority=0, kind="b"), defaults)
    assert (job.kind, job.queue, job.priority) == ("b", "mail", 0)


def test_a_time_in_the_line_replaces_a_delay_for_all() -> None:
    job = parse_line(
        line(kind="a", scheduled_at="2030-01-01T00:00:00Z"), {"delay": timedelta(minutes=1)}
    )
    assert job.delay is None
    assert job.scheduled_at == datetime(2030, 1, 1, tzinfo=UTC)


def test_seconds_are_a_timeout_too() -> None:
    assert parse_line(line(kind="a", timeout=2.5), {}).timeout == timedelta(seconds=2.5)


def test_a_line_without_a_kind_takes_the_type_of_its_payload() -> None:
    job = parse_line(line(payload={"type": "send_email", "to": "a"}), {"kind": None})
    assert (job.kind, job.payload) == ("send_email", {"type": "send_email", "to": "a"})


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b"nope", "not JSON"),
        (b"[]", "must be a JSON object, not an array"),
        (b"\xff{}", "not UTF-8 text at byte 1"),
        (line(kind="a", colour="red", Queue="x"), "unknown field 'Queue', 'colour'"),
        (line(type="a", to="b"), "unknown field"),
        (line(payload={"to": "b"}), "no kind"),
        (line(payload={"type": 7}), "no kind"),
        (line(payload=[]), "no kind"),
        (line(kind="a", scheduled_at="2030-01-01"), "no zone"),
        (line(kind="a", scheduled_at=1893456000), "scheduled_at: give a time"),
        (line(kind="a", timeout="soon"), "90s, 5m"),
        (line(kind="a", timeout=-1), "timeout: give a duration"),
        (line(kind="a", timeout=True), "timeout: give a duration"),
    ],
)
def test_what_is_no_job_is_refused_with_the_reason(bad: bytes, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        parse_line(bad, {})


def test_lines_are_numbered_as_in_an_editor_and_empty_ones_are_no_jobs() -> None:
    lines = Lines(io.BytesIO(b"\xef\xbb\xbfa\r\n\r\n\nb\n\n c \n"), longest=100)
    assert [(lines.number, text) for text in lines] == [(1, b"a"), (4, b"b"), (6, b" c ")]
    assert lines.number == 6


def test_a_line_without_an_end_is_cut_without_being_kept() -> None:
    stream = io.BytesIO(b"x" * 1000 + b"\nnext\n" + b"y" * 25)
    lines = Lines(stream, longest=10)
    assert [(text, lines.is_cut(text)) for text in lines] == [
        (b"x" * 10, True),
        (b"next", False),
        (b"y" * 10, True),
    ]
    assert lines.number == 3
    assert lines.taken() == 1000 + 6 + 25
    assert lines.taken() == 0
