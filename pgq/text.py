"""Text for people and for the database: safe(), durations, ages, JSON. Pure."""

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from pgq.errors import PayloadError, UsageError

_UNSAFE = re.compile(
    # C0 and C1 controls, DEL, bidirectional marks and overrides, line and paragraph separators,
    # zero-width characters, lone surrogates.
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")
MAX_DURATION = timedelta(days=36500)


def safe(text: str) -> str:
    """Return `text` as one line that cannot move a cursor, forge a line or hide a word."""
    return _UNSAFE.sub(_escape, text)


def safe_lines(text: str) -> str:
    """Return `text` with its line breaks kept and everything else made safe."""
    return "\n".join(safe(line.expandtabs()) for line in text.replace("\r\n", "\n").split("\n"))


def storable(text: str, limit: int) -> str:
    """Text that PostgreSQL can hold, at most about `limit` characters, cut in the middle."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]} ... {len(text) - 2 * half} characters cut ... {text[-half:]}"
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


_KNOWN = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def _escape(match: re.Match[str]) -> str:
    if match[0] in _KNOWN:
        return _KNOWN[match[0]]
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def parse_duration(text: str) -> timedelta:
    """Read `90s`, `5m`, `2h`, `1d` or a sequence of them such as `1h30m`; UsageError otherwise."""
    match = _DURATION.fullmatch(text.strip()) if text.strip() else None
    if match is None:
        raise UsageError(f"duration '{safe(text)}': write it like 90s, 5m, 2h, 1d or 1h30m")
    days, hours, minutes = (min(int(part or 0), 10**9) for part in match.groups()[:3])
    seconds = min(float(match[4] or 0), 1e13)
    total = days * 86400 + hours * 3600 + minutes * 60 + seconds
    if total > MAX_DURATION.total_seconds():
        raise UsageError(f"duration '{safe(text)}': at most {MAX_DURATION.days}d")
    return timedelta(seconds=total)


def format_duration(value: timedelta) -> str:
    """Write a duration the way parse_duration reads it, to at most two units."""
    seconds = value.total_seconds()
    if seconds < 0:
        return "-" + format_duration(-value)
    if seconds < 60:
        return f"{round(seconds, 3):g}s"
    whole = round(seconds)
    parts = [
        (whole // 86400, "d"),
        (whole % 86400 // 3600, "h"),
        (whole % 3600 // 60, "m"),
        (whole % 60, "s"),
    ]
    shown = [(count, unit) for count, unit in parts if count]
    return "".join(f"{count}{unit}" for count, unit in shown[:2])


def parse_time(text: str) -> datetime:
    """Read an ISO 8601 time with a zone; UsageError without one, since hosts disagree on theirs."""
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            f"time '{safe(text)}': write it like 2030-01-31T08:00:00Z or 2030-01-31T08:00+02:00"
        ) from None
    return require_zone(instant, shown=text)


def require_zone(instant: datetime, *, shown: str | None = None) -> datetime:
    """Return the instant in UTC; UsageError if it has no zone."""
    if instant.tzinfo is None or instant.utcoffset() is None:
        name = safe(shown if shown is not None else instant.isoformat())
        raise UsageError(f"time '{name}' has no zone: add Z for UTC or an offset such as +02:00")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise UsageError(f"time '{safe(str(instant))}' is out of range") from None


def format_time(instant: datetime) -> str:
    """Write an instant as ISO 8601 in UTC, to the millisecond, with its zone."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def dump_json(value: Any, *, what: str = "payload") -> str:
    """Write JSON that jsonb takes and every reader reads back; PayloadError names the bad place.

    Refused: NUL characters, lone surrogates, NaN, numbers beyond a double, values that are no
    JSON, nesting beyond the reach of the parser.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
        text.encode()
    except (ValueError, TypeError, RecursionError, UnicodeEncodeError):
        problem = _first_problem(value)
        raise PayloadError(*(problem or ("", "it cannot be written as JSON")), what=what) from None
    # A digit run this long may be a number beyond a double, `\u0000` is how NUL is written, and
    # many brackets may be deep nesting.
    nested = text.count("{") + text.count("[") > MAX_DEPTH
    if nested or "\\u0000" in text or _LONG_NUMBER.search(text):
        problem = _first_problem(value)
        if problem is not None:
            raise PayloadError(*problem, what=what)
    return text


MAX_DEPTH = 500
"""Levels of nesting that every reader, with its own recursion, can follow."""

_LONG_NUMBER = re.compile(r"\d{300}")


# What the database writes has no blanks around it, so that most of json.loads can be left out: it
# costs a worker as much as the rest of a short job.
_scan: Callable[[str, int], tuple[Any, int]] = cast("Any", json.JSONDecoder()).scan_once


class Unreadable(dict[str, Any]):
    """JSON that the database holds and Python cannot read: empty, with its text and the reason."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__()
        self.text = text
        self.reason = reason


def read_json(stored: str | bytes) -> Any:
    """Read JSON from the database, whatever it is: what cannot be read is an Unreadable.

    jsonb holds numbers of 100,000 digits and nesting of thousands of levels, which a plain INSERT
    may bring.
    """
    text = stored if isinstance(stored, str) else stored.decode("utf-8", "backslashreplace")
    try:
        return _scan(text, 0)[0]
    except (ValueError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        return Unreadable(text, "it is nested too deeply" if deep else "it has a number too long")


def load_object(text: str, *, what: str = "payload") -> dict[str, Any]:
    """Read a JSON object as a person or a file wrote it; PayloadError says what is wrong where."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        place = (
            f"line {error.lineno} column {error.colno}"
            if error.lineno > 1
            else (f"column {error.colno}")
        )
        raise PayloadError("", f"not JSON: {error.msg} at {place}", what=what) from None
    except (RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else "a number too long"
        raise PayloadError("", f"not usable JSON: {reason}", what=what) from None
    if not isinstance(value, dict):
        raise PayloadError("", f"must be a JSON object, not {_json_type(value)}", what=what)
    return value


def _plain(value: object) -> object:
    """Turn dataclasses and pydantic models into what JSON knows."""
    import dataclasses

    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    raise TypeError(type(value).__name__)


def as_object(payload: Any) -> Any:
    """Return a payload as the mapping it stands for; PayloadError if it is no object."""
    if isinstance(payload, Mapping):
        return dict(payload)
    try:
        return _plain(payload)
    except TypeError:
        raise PayloadError("", f"must be a JSON object, not {_json_type(payload)}") from None
    except Exception as error:  # noqa: BLE001 - a model's own code
        problem = f"{type(error).__name__} while it was written: {safe(str(error))}"
        raise PayloadError("", problem) from None


def _first_problem(root: object) -> tuple[str, str] | None:
    """Find the first value that JSON or jsonb cannot hold: (its path, what is wrong)."""
    stack: list[tuple[str, object, int]] = [("$", root, 0)]
    while stack:
        path, value, depth = stack.pop()
        if depth > MAX_DEPTH:
            return path[:80] + "...", "nested too deeply"
        problem = _scalar_problem(value)
        if problem is not None:
            return path, problem
        if isinstance(value, Mapping):
            for key in value:
                bad = _string_problem(key) if isinstance(key, str) else None
                if bad is not None:
                    return f"{path}, key '{safe(str(key))}'", bad
                if not (key is None or isinstance(key, str | int | float | bool)):
                    return path, f"a key of type {type(key).__name__} is no JSON"
            children = [(f"{path}.{safe(str(k))}", v, depth + 1) for k, v in value.items()]
        elif isinstance(value, list | tuple):
            children = [(f"{path}[{n}]", v, depth + 1) for n, v in enumerate(value)]
        else:
            continue
        stack.extend(reversed(children))
    return None


def _scalar_problem(value: object) -> str | None:
    match value:
        case None | bool() | Mapping() | list() | tuple():
            return None
        case str():
            return _string_problem(value)
        case float():
            if math.isnan(value):
                return "NaN is no JSON number"
            return None if math.isfinite(value) else "a number beyond the range of a double"
        case int():
            return None if abs(value) <= _MAX_DOUBLE else "a number beyond the range of a double"
        case _:
            try:
                return _first_problem_text(_plain(value))
            except TypeError:
                return f"a value of type {type(value).__name__} is no JSON"


def _first_problem_text(value: object) -> str | None:
    problem = _first_problem(value)
    return None if problem is None else f"{problem[1]} ({problem[0]})"


_MAX_DOUBLE = int(1.7976931348623157e308)


def _string_problem(value: str) -> str | None:
    if "\0" in value:
        return "a NUL character (\\u0000), which PostgreSQL cannot store,"
    if _SURROGATE.search(value):
        return "a lone surrogate, which is not text,"
    return None


_SURROGATE = re.compile("[\ud800-\udfff]")


def _json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "an array"
        case Mapping():
            return "an object"
        case _:
            return f"a {type(value).__name__}"
