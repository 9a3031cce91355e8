"""What a worker and its child processes tell each other, as bytes. Pure.

Down go pickles of our own values, exact and fast. Up comes plain JSON: no exception of the
application has to be pickled, and a child that went wrong cannot make the worker run anything.
"""

import json
import pickle
import struct
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar, get_type_hints

from pgq.model import (
    Buried,
    Cancelled,
    ClaimedJob,
    Done,
    Failed,
    HandedBack,
    Snoozed,
    Verdict,
)
from pgq.registry.reference import Reference

MAX_UP = 16_777_216
"""Bytes of a message from a child at most; a result of a megabyte has three when escaped."""

_LENGTH = struct.Struct("!I")


@dataclass(frozen=True, slots=True)
class Work:
    """Run this job."""

    reference: Reference
    job: ClaimedJob
    """Without its payload."""
    payload: str
    """As JSON: pickle does not reach as deep."""
    dsn: str
    log_level: int
    """The least severe records that the worker hears."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The handler has been imported: the time of its job begins."""

    lease: int


@dataclass(frozen=True, slots=True)
class Progress:
    """A job said how far it is."""

    lease: int
    text: str


@dataclass(frozen=True, slots=True)
class Logged:
    """A record of logging that a handler emitted."""

    lease: int
    logger: str
    level: int
    created: float
    message: str
    traceback: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A job ended."""

    lease: int
    verdict: Verdict
    gave_up: bool
    """It raised after it was asked to stop."""
    memory: int
    """Bytes that the child holds now."""


Up: TypeAlias = Loaded | Progress | Logged | Answer


def pack_work(work: Work) -> bytes:
    """A job for a child, framed."""
    return _framed(pickle.dumps(work, pickle.HIGHEST_PROTOCOL))


def unpack_work(frame: bytes) -> Work:
    """Read what pack_work wrote."""
    work: Work = pickle.loads(frame)
    return work


def pack_ask(lease: int) -> bytes:
    """That the job of this lease is asked to stop, framed."""
    return _framed(str(lease).encode())


def unpack_ask(frame: bytes) -> int:
    """Read what pack_ask wrote."""
    return int(frame)


def pack_up(message: Up) -> bytes:
    """A message to the worker, framed."""
    told = {field.name: getattr(message, field.name) for field in fields(message)}
    if isinstance(message, Answer):
        told["verdict"] = _plain(message.verdict)
    return _framed(json.dumps([type(message).__name__, told]).encode())


def unpack_up(frame: bytes) -> Up:
    """Read what pack_up wrote; ValueError for anything else."""
    try:
        name, told = json.loads(frame)
        if name == Answer.__name__:
            told["verdict"] = _verdict(told["verdict"])
        message = _made(_MESSAGES[name], told)
        if isinstance(message, Progress) and not isinstance(json.loads(message.text), dict):
            raise TypeError("progress is no JSON object")
        return message
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise ValueError(f"not a message of a child: {error}") from None


_MESSAGES: dict[str, type[Up]] = {
    kind.__name__: kind for kind in (Loaded, Progress, Logged, Answer)
}
_VERDICTS: dict[str, type[Verdict]] = {
    kind.__name__: kind for kind in (Done, Failed, Buried, Snoozed, Cancelled, HandedBack)
}
_TYPES: dict[type, dict[str, Any]] = {
    kind: get_type_hints(kind) for kind in (*_MESSAGES.values(), *_VERDICTS.values())
}
Told = TypeVar("Told", bound=Up | Verdict)


def _plain(verdict: Verdict) -> list[Any]:
    values = {field.name: getattr(verdict, field.name) for field in fields(verdict)}
    if isinstance(values.get("delay"), timedelta):
        delay = values["delay"]
        values["delay"] = [delay.days, delay.seconds, delay.microseconds]
    return [type(verdict).__name__, values]


def _verdict(plain: list[Any]) -> Verdict:
    name, values = plain
    if values.get("delay") is not None:
        values["delay"] = timedelta(*values["delay"])
    for value in values.values():
        if isinstance(value, str):
            value.encode()  # what cannot be, cannot be stored
    return _made(_VERDICTS[name], values)


def _made(kind: type[Told], values: dict[str, Any]) -> Told:
    """One of our values, each field of which has the type that it should have."""
    made = kind(**values)
    for name, wanted in _TYPES[kind].items():
        if not isinstance(getattr(made, name), wanted):
            raise TypeError(f"{kind.__name__}.{name} is {type(getattr(made, name)).__name__}")
    return made


def _framed(body: bytes) -> bytes:
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Cuts a stream of bytes into messages."""

    def __init__(self, *, limit: int | None = None) -> None:
        self._limit = limit
        self._kept = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take bytes, give the messages that are whole; ValueError for one above the limit."""
        self._kept += chunk
        while len(self._kept) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._kept)
            if self._limit is not None and length > self._limit:
                raise ValueError(f"a message of {length} bytes")
            end = _LENGTH.size + length
            if len(self._kept) < end:
                return
            frame = bytes(self._kept[_LENGTH.size : end])
            del self._kept[:end]
            yield frame
