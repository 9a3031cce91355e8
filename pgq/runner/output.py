"""The end of what a job wrote or logged, kept for people who ask why it failed. Pure."""

from dataclasses import replace
from typing import assert_never

from pgq.model import Buried, Cancelled, Done, Failed, HandedBack, Snoozed, Verdict
from pgq.text import storable

TAIL = 8_000
"""How many bytes of the end are kept."""


class Tail:
    """The last bytes of an output of any length."""

    __slots__ = ("_cut", "_kept")

    def __init__(self) -> None:
        self._kept = bytearray()
        self._cut = False

    def feed(self, chunk: bytes) -> None:
        """Take what was written."""
        self._cut |= len(self._kept) + len(chunk) > TAIL
        self._kept += chunk[-TAIL:]
        if len(self._kept) > 2 * TAIL:
            del self._kept[:-TAIL]

    def text(self) -> str | None:
        """The end as text that can be stored and shown; None if nothing was written.

        It begins with a whole line, after one that says so if there was more.
        """
        kept = bytes(self._kept[-TAIL:])
        if self._cut:
            _, newline, rest = kept.partition(b"\n")
            kept = b"...\n" + (rest if newline and rest.strip() else kept.lstrip(_MIDDLES))
        text = kept.decode("utf-8", "backslashreplace").strip()
        return storable(text, 2 * TAIL) if text else None


_MIDDLES = bytes(range(0x80, 0xC0))
"""Bytes of UTF-8 that begin no character."""


def with_output(verdict: Verdict, tail: Tail) -> Verdict:
    """The verdict with the end of the output, if it is one that keeps it."""
    match verdict:
        case Failed() | Buried() | Cancelled():
            return replace(verdict, output=tail.text())
        case Done() | Snoozed() | HandedBack():
            return verdict
        case _:
            assert_never(verdict)
