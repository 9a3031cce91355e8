"""Options and arguments that several commands have, and how their texts are read."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, TypeVar

import typer

from pgq.errors import UsageError
from pgq.text import parse_duration, parse_time
from pgq_cli.render import Output

T = TypeVar("T")

OutputOption = Annotated[
    Output, typer.Option("--output", "-o", help="Table for people, the others for programs.")
]


def whole_number(value: str | int) -> int:
    """The value of an option or argument that is a whole number, as Typer wants it read."""
    try:
        return int(value)
    except ValueError:
        raise typer.BadParameter(f"'{value}' is not a whole number") from None


JobId = Annotated[int, typer.Argument(parser=whole_number, metavar="ID", help="The job's id.")]
JobIds = Annotated[
    list[int], typer.Argument(parser=whole_number, metavar="ID...", help="The jobs' ids.")
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Change nothing, and say what would become of each job. JSON and CSV look as if it "
        "were done.",
    ),
]

Embedded = Annotated[
    bool, typer.Option("--embedded", help="Work on the private server (pgq server).")
]


def new_app() -> typer.Typer:
    """What a command's module registers its function with."""
    return typer.Typer(rich_markup_mode=None, add_completion=False)


def duration(option: str, text: str | None) -> timedelta | None:
    """The value of an option such as `--delay 5m`."""
    return _read(option, text, parse_duration)


def instant(option: str, text: str | None) -> datetime | None:
    """The value of an option such as `--at 2030-01-31T08:00:00Z`."""
    return _read(option, text, parse_time)


def since(option: str, text: str | None) -> timedelta | datetime | None:
    """The value of an option that takes a time, or how long ago."""
    if text is None:
        return None
    if text[:4].isdigit() and "-" in text:
        return instant(option, text)
    try:
        return duration(option, text)
    except UsageError as error:
        raise UsageError(f"{error}, or a time such as 2030-01-31T08:00:00Z") from None


def _read(option: str, text: str | None, parse: Callable[[str], T]) -> T | None:
    if text is None:
        return None
    try:
        return parse(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None
