"""The terminal: data to stdout, talk to stderr. Nothing else in pgq_cli writes to them."""

import io
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from pgq.errors import PgqError
from pgq.text import safe
from pgq_cli import render
from pgq_cli.render import Output


def emit(text: str, *, machine: bool = False) -> None:
    """Write data to stdout; what a program reads is UTF-8, whatever the locale says."""
    stdout: TextIO | None = sys.stdout
    if stdout is None:
        raise PgqError("stdout is closed: nothing can be printed")
    if machine and stdout.encoding.lower() != "utf-8":
        _reconfigure(stdout, encoding="utf-8")
    stdout.write(text)


def emit_rows(
    columns: Sequence[str],
    rows: Sequence[render.Row],
    output: Output,
    *,
    shown: Sequence[str] | None = None,
    empty: str = "",
    dry_run: bool = False,
) -> None:
    """Write rows in the wanted form; a table without any says `empty` on stderr instead.

    A table of a dry run says of each outcome that it would be.
    """
    if dry_run and output is Output.TABLE:
        rows = render.supposed(columns, rows)
    text = render.listing(columns, rows, output, shown=shown, width=width())
    emit(text, machine=output is not Output.TABLE)
    if not rows and output is Output.TABLE and empty:
        talk(empty)


def emit_lines(lines: Iterable[str]) -> None:
    """Write sentences for people to stdout, each on one line."""
    for line in lines:
        emit(safe(line) + "\n")


def talk(text: str) -> None:
    """Say one line on stderr."""
    if sys.stderr is not None:
        sys.stderr.write(safe(text) + "\n")


def width() -> int | None:
    """How wide a table may be: the terminal's width, or None where stdout is no terminal."""
    return shutil.get_terminal_size().columns if _is_terminal(sys.stdout) else None


def is_attended() -> bool:
    """Whether a person is at a terminal, to read and to answer."""
    return _is_terminal(sys.stdin) and _is_terminal(sys.stderr)


def escape_unwritable() -> None:
    """Let a character that the locale cannot write be escaped, instead of ending the program."""
    _buffer_stdout()
    for stream in (sys.stdout, sys.stderr):
        _reconfigure(stream, errors="backslashreplace")


def _buffer_stdout() -> None:
    """Under PYTHONUNBUFFERED a write that the system takes in part would lose the rest unseen."""
    stdout = sys.stdout
    if stdout is not None and isinstance(getattr(stdout, "buffer", None), io.RawIOBase):
        buffered = io.BufferedWriter(stdout.buffer)  # type: ignore[arg-type,unused-ignore]
        sys.stdout = io.TextIOWrapper(buffered, encoding=stdout.encoding, errors=stdout.errors)


def write_by_lines() -> None:
    """Hand over each line of stdout as it is written, since what runs for long may be killed."""
    _reconfigure(sys.stdout, line_buffering=True)


def flush() -> None:
    """Hand over what was written; this is where a reader that went away is noticed."""
    if not getattr(sys.stdout, "closed", True):  # None, and whatever a handler has put in its place
        sys.stdout.flush()


def abandon_unwritten() -> None:
    """After a failed write: what stdout still holds would fail again as the process ends."""
    try:
        flush()
    except OSError:
        silence_stdout()


def silence_stdout() -> None:
    """Let what is still to be written go nowhere, after the reader of stdout went away."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _reconfigure(stream: TextIO | None, **settings: str | bool) -> None:
    change = getattr(stream, "reconfigure", None)
    if change is not None:
        change(**settings)
