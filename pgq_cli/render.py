"""Rows as text: a table for people, JSON, JSON Lines and CSV for programs. Pure.

In every form a stored text stays on its line and cannot move a cursor: tables and CSV escape
control and bidirectional characters the way pgq.text.safe does, JSON the way JSON does.
"""

import csv
import io
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import NoneType
from typing import Any, assert_never

from pgq.text import format_duration, format_time, safe

Row = tuple[Any, ...]

GAP = 2
"""Blanks between two columns of a table."""
NARROWEST = 8
"""No column of a table is cut below this many characters."""


class Output(StrEnum):
    """The form of what a command prints."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


def listing(
    columns: Sequence[str],
    rows: Sequence[Row],
    output: Output,
    *,
    shown: Sequence[str] | None = None,
    width: int | None = None,
) -> str:
    """Rows in the wanted form; "" for a table or JSON Lines without any.

    A table has the columns `shown` (all, if None), cut to fit `width` characters (not, if None).
    The other forms have all columns and all text. Times are ISO 8601 with their zone; durations
    are seconds, in a table 1h30m.
    """
    match output:
        case Output.TABLE:
            return _table(columns, rows, shown or columns, width) if rows else ""
        case Output.JSON:
            return dump([_record(columns, row) for row in rows], indent=2) + "\n"
        case Output.JSONL:
            return "".join(dump(_record(columns, row)) + "\n" for row in rows)
        case Output.CSV:
            return _csv(columns, rows)
        case _:
            assert_never(output)


DONE = frozenset({"requeued", "cancelled", "killed", "requested", "failed"})
"""The outcomes that say that a job was changed."""


def supposed(columns: Sequence[str], rows: Sequence[Row]) -> list[Row]:
    """The rows of a dry run, for people: what would be done does not read as if it were."""
    place = columns.index("outcome")
    return [
        (*row[:place], f"would be {row[place]}", *row[place + 1 :]) if row[place] in DONE else row
        for row in rows
    ]


def dump(value: Any, *, indent: int | None = None) -> str:
    """JSON that any terminal shows as it is: no raw control or bidirectional character."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=_plain)
    return _RISKY.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


# What json.dumps leaves as it is and pgq.text.safe does not; all of it can only be in strings.
_RISKY = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def clip(text: str, width: int) -> str:
    """At most `width` characters of a text, with dots where it goes on."""
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."


def cell(value: Any) -> str:
    """A value for people, in one line."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        case timedelta():
            return format_duration(value)
        case str():
            return safe(value)
        case dict() | list():
            return dump(value)
        case _:
            return str(value)


def _record(columns: Sequence[str], row: Row) -> dict[str, Any]:
    return dict(zip(columns, row, strict=True))


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return format_time(value)
        case timedelta():
            return value.total_seconds()
        case _:
            raise TypeError(f"{type(value).__name__} is no JSON")


def _csv(columns: Sequence[str], rows: Sequence[Row]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_csv_cell(value) for value in row])
    return buffer.getvalue()


def _csv_cell(value: Any) -> str:
    return str(_plain(value)) if isinstance(value, datetime | timedelta) else cell(value)


def _table(
    columns: Sequence[str], rows: Sequence[Row], shown: Sequence[str], width: int | None
) -> str:
    from tabulate import tabulate

    places = [columns.index(name) for name in shown]
    types = [{type(row[place]) for row in rows} - {NoneType} for place in places]
    # The names are a row of their own: tabulate would make each column wider than its heading.
    cells = [[name.upper() for name in shown]]
    cells += [[cell(row[place]) for place in places] for row in rows]
    return (
        tabulate(
            cells if width is None else _fit(cells, [kinds <= _TEXTS for kinds in types], width),
            tablefmt="plain",
            disable_numparse=True,
            colalign=["right" if kinds and kinds <= _NUMBERS else "left" for kinds in types],
        )
        + "\n"
    )


_NUMBERS = {int, float}
_TEXTS = {str, dict, list}


def _fit(cells: list[list[str]], texts: Sequence[bool], width: int) -> list[list[str]]:
    """Cut the widest columns of texts until the table fits, or none is left to cut."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    least = [
        max(len(heading), NARROWEST) if text else have
        for heading, text, have in zip(cells[0], texts, widths, strict=True)
    ]
    room = width - GAP * (len(widths) - 1)
    while sum(widths) > room:
        spare = [max(have - need, 0) for have, need in zip(widths, least, strict=True)]
        if not any(spare):
            break
        widths[max(range(len(widths)), key=lambda place: (spare[place] > 0, widths[place]))] -= 1
    return [[clip(text, to) for text, to in zip(row, widths, strict=True)] for row in cells]
