"""The end of what a job wrote, kept for people who ask why it failed. Pure."""

from pgq.text import storable

TAIL = 8_000
"""How many bytes of the end are kept."""


class Tail:
    """The last bytes of an output of any length."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take what was written."""
        self._kept += chunk
        if len(self._kept) > 2 * TAIL:
            del self._kept[:-TAIL]

    def text(self) -> str | None:
        """The end as text that can be stored and shown; None if nothing was written."""
        text = bytes(self._kept[-TAIL:]).decode("utf-8", "backslashreplace").strip()
        return storable(text, 2 * TAIL) if text else None
