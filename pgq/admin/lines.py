"""Jobs as lines of text: what a line may say, and reading lines of any length. Pure.

A line is a JSON object: `{"kind": "send_email", "payload": {"to": "a@example.org"}}`, and
optionally queue, priority, scheduled_at (ISO 8601 with a zone), max_attempts, timeout (such as
"90s", or a number of seconds) and unique_key. null is the same as nothing.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import IO, Any

from pgq.errors import PayloadError, UsageError
from pgq.model import NewJob
from pgq.text import load_object, parse_duration, parse_time, safe

FIELDS = (
    "kind", "payload", "queue", "priority", "scheduled_at", "max_attempts", "timeout", "unique_key",
)  # fmt: skip


def parse_line(line: bytes, defaults: Mapping[str, Any]) -> NewJob:
    """The job that a line stands for; UsageError says what is wrong with it.

    `defaults` are fields of NewJob, for what the line leaves out.
    """
    given = _fields(line)
    options = {**defaults, **given}
    if "scheduled_at" in given:
        options["scheduled_at"] = _time(given["scheduled_at"])
        options.pop("delay", None)
    if "timeout" in given:
        options["timeout"] = _duration(given["timeout"])
    payload = options.setdefault("payload", {})
    if options.get("kind") is None:
        options["kind"] = kind_of(payload)
    return NewJob(**options)


def kind_of(payload: Any) -> str:
    """The kind of a job that was given none: its payload's `type`."""
    kind = payload.get("type") if isinstance(payload, Mapping) else None
    if not isinstance(kind, str):
        raise UsageError("no kind: name one, or give the payload a type that is a string")
    return kind


def _fields(line: bytes) -> dict[str, Any]:
    try:
        given = load_object(line.decode())
    except UnicodeDecodeError as error:
        raise UsageError(f"not UTF-8 text at byte {error.start + 1}") from None
    except PayloadError as error:
        raise UsageError(error.problem) from None
    unknown = sorted(given.keys() - set(FIELDS))
    if unknown:
        names = ", ".join(safe(repr(name[:60])) for name in unknown[:5])
        raise UsageError(f"unknown field {names}: a line has {', '.join(FIELDS)}")
    return {name: value for name, value in given.items() if value is not None}


def _time(value: object) -> datetime:
    if not isinstance(value, str):
        raise UsageError("scheduled_at: give a time such as 2030-01-31T08:00:00Z")
    return parse_time(value)


def _duration(value: object) -> timedelta:
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise UsageError('timeout: give a duration such as "90s", or seconds above 0')
    return timedelta(seconds=value)


class Lines:
    """The lines of a stream that are not empty, with their numbers.

    A byte order mark and carriage returns are dropped. Of a line longer than `longest` only the
    beginning is kept: its length says so (`is_cut`).
    """

    def __init__(self, stream: IO[bytes], *, longest: int) -> None:
        self.number = 0
        self._stream = stream
        self._longest = longest
        self._read = 0

    def taken(self) -> int:
        """How many bytes were read since the last call."""
        taken, self._read = self._read, 0
        return taken

    def is_cut(self, line: bytes) -> bool:
        """Whether only the beginning of this line was kept."""
        return len(line) >= self._longest

    def __iter__(self) -> Iterator[bytes]:
        while line := self._next():
            self.number += 1
            if self.number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line := line.rstrip(b"\r\n"):
                yield line

    def _next(self) -> bytes:
        line = self._stream.readline(self._longest)
        self._read += len(line)
        rest = line
        while len(rest) == self._longest and not rest.endswith(b"\n"):
            rest = self._stream.readline(self._longest)
            self._read += len(rest)
        return line
