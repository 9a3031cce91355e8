"""Rows as text."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import pytest

from pgq_cli.render import Output, Row, clip, dump, listing

COLUMNS = ("id", "name", "at", "took", "ok", "payload", "note")
AT = datetime(2030, 1, 31, 8, 0, 0, 123_000, tzinfo=UTC)
ROWS: list[Row] = [
    (7, "00042", AT, timedelta(seconds=90), True, {"to": "Zoë"}, None),
    (12345, "1e5", AT, None, None, None, "two\nlines"),
]
HOSTILE = "\x1b[2J\x1b]0;t\x07\r\n\u202e\x9b\u2028[/foo]"


def test_a_table_is_for_people() -> None:
    assert listing(COLUMNS, ROWS, Output.TABLE).splitlines() == [
        "   ID  NAME   AT                    TOOK   OK    PAYLOAD        NOTE",
        '    7  00042  2030-01-31T08:00:00Z  1m30s  true  {"to": "Zoë"}',
        "12345  1e5    2030-01-31T08:00:00Z                              two\\nlines",
    ]


def test_json_has_every_column_under_its_name_and_times_with_a_zone() -> None:
    assert json.loads(listing(COLUMNS, ROWS, Output.JSON, shown=("id",), width=10)) == [
        {
            "id": 7, "name": "00042", "at": "2030-01-31T08:00:00.123Z", "took": 90.0, "ok": True,
            "payload": {"to": "Zoë"}, "note": None,
        },
        {
            "id": 12345, "name": "1e5", "at": "2030-01-31T08:00:00.123Z", "took": None,
            "ok": None, "payload": None, "note": "two\nlines",
        },
    ]  # fmt: skip


def test_json_lines_has_the_same_objects_one_a_line() -> None:
    lines = listing(COLUMNS, ROWS, Output.JSONL).splitlines()
    assert [json.loads(line) for line in lines] == json.loads(listing(COLUMNS, ROWS, Output.JSON))


def test_csv_has_a_heading_and_a_line_a_row() -> None:
    assert listing(COLUMNS, ROWS, Output.CSV).splitlines() == [
        "id,name,at,took,ok,payload,note",
        '7,00042,2030-01-31T08:00:00.123Z,90.0,true,"{""to"": ""Zoë""}",',
        "12345,1e5,2030-01-31T08:00:00.123Z,,,,two\\nlines",
    ]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (Output.TABLE, ""),
        (Output.JSON, "[]\n"),
        (Output.JSONL, ""),
        (Output.CSV, "id,name\n"),
    ],
)
def test_no_rows_are_valid_in_every_form(output: Output, expected: str) -> None:
    assert listing(("id", "name"), [], output) == expected


def test_a_table_fits_the_terminal_by_cutting_texts_alone() -> None:
    rows: list[Row] = [(1234567890123, "q" * 40, AT, "e" * 200)]
    columns = ("id", "queue", "at", "error")
    cut = listing(columns, rows, Output.TABLE, width=70)
    assert max(map(len, cut.splitlines())) == 70
    assert "1234567890123" in cut
    assert "2030-01-31T08:00:00Z" in cut
    assert "qqqqq..." in cut
    assert "e..." in cut


def test_a_table_that_cannot_fit_keeps_its_numbers() -> None:
    rows: list[Row] = [(1234567890123, "q" * 40)]
    assert listing(("id", "queue"), rows, Output.TABLE, width=5).splitlines() == [
        "           ID  QUEUE",
        "1234567890123  qqqqq...",
    ]


def test_without_a_terminal_nothing_is_cut() -> None:
    assert "e" * 500 in listing(("error",), [("e" * 500,)], Output.TABLE, width=None)


@pytest.mark.parametrize("output", list(Output))
def test_stored_text_cannot_move_a_cursor_or_forge_a_line(output: Output) -> None:
    rows: list[Row] = [(HOSTILE, {HOSTILE: [HOSTILE]})]
    text = listing(("name", "payload"), rows, output)
    assert all(character.isprintable() or character == "\n" for character in text)
    plain = listing(("name", "payload"), [("x", {"x": ["x"]})], output)
    assert text.count("\n") == plain.count("\n")


@pytest.mark.parametrize("output", [Output.JSON, Output.JSONL])
def test_json_gives_hostile_text_back_unchanged(output: Output) -> None:
    text = listing(("name",), [(HOSTILE,)], output)
    found = json.loads(text)
    assert (found if output is Output.JSONL else found[0]) == {"name": HOSTILE}


def test_json_keeps_letters_readable() -> None:
    assert dump({"to": "Zoë 日本 🙂"}) == '{"to": "Zoë 日本 🙂"}'


def test_csv_is_read_back_by_a_csv_reader() -> None:
    text = listing(("a", "b"), [('x,"y"', "=1+1")], Output.CSV)
    assert list(csv.reader(io.StringIO(text))) == [["a", "b"], ['x,"y"', "=1+1"]]


def test_a_clipped_text_says_that_it_goes_on() -> None:
    assert (clip("abcdefgh", 8), clip("abcdefghi", 8)) == ("abcdefgh", "abcde...")
