"""What a worker and its child processes tell each other arrives as it was said."""

import logging
from datetime import timedelta
from typing import Any

import pytest

from pgq.model import Buried, Cancelled, Done, Failed, HandedBack, Snoozed, Verdict
from pgq.runner.forward import Forwarder
from pgq.runner.wire import (
    Answer,
    Frames,
    Loaded,
    Logged,
    Progress,
    Up,
    pack_ask,
    pack_up,
    unpack_ask,
    unpack_up,
)

VERDICTS: list[Verdict] = [
    Done(),
    Done('{"a": "\\u00e4"}', "a note"),
    Failed("no", "Traceback", timedelta(microseconds=1), timed_out=True, output="ä\0"),
    Failed("no"),
    Buried("for good", "Traceback"),
    Snoozed(timedelta(days=36500)),
    Cancelled("pointless"),
    HandedBack(),
]
MESSAGES: list[Up] = [
    Loaded(-(2**63)),
    Progress(2**63 - 1, '{"fraction": 0.5}'),
    Logged(1, "shop", 20, 1.5, "sold \udc80", None),
    *(Answer(1, verdict, gave_up=True, memory=2**40) for verdict in VERDICTS),
]


def cut(*chunks: bytes, limit: int | None = None) -> list[bytes]:
    frames = Frames(limit=limit)
    return [frame for chunk in chunks for frame in frames.feed(chunk)]


def answer(verdict: bytes, memory: bytes = b"1") -> bytes:
    start = b'["Answer", {"lease": 1, "gave_up": false, "memory": ' + memory
    return start + b', "verdict": [' + verdict + b"]}]"


@pytest.mark.parametrize("message", MESSAGES, ids=repr)
def test_a_message_of_a_child_arrives_as_it_was_said(message: Up) -> None:
    assert [unpack_up(frame) for frame in cut(pack_up(message))] == [message]


def test_a_lease_is_asked_by_its_number() -> None:
    assert [unpack_ask(frame) for frame in cut(pack_ask(-7))] == [-7]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_messages_are_cut_from_a_stream_wherever_it_breaks(size: int) -> None:
    stream = b"".join(map(pack_up, MESSAGES))
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]

    assert [unpack_up(frame) for frame in cut(*chunks)] == MESSAGES


def test_a_message_above_the_limit_is_refused_before_it_is_there() -> None:
    with pytest.raises(ValueError, match="a message of 100 bytes"):
        cut(b"\0\0\0\x64", limit=99)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b'["Loaded", {}]',
        b'["Nothing", {"lease": 1}]',
        b'["Loaded", {"lease": 1, "more": 2}]',
        b'["Answer", {"lease": 1, "verdict": ["Nothing", {}], "gave_up": false, "memory": 1}]',
        b'["Answer", {"lease": 1, "verdict": [], "gave_up": false, "memory": 1}]',
        b'["Answer", {"lease": 1, "verdict": ["Snoozed", {"delay": 1e99}], "gave_up": false}]',
        b"[" * 100_000,
        b'["Loaded", {"lease": "1"}]',
        b'["Progress", {"lease": 1, "text": null}]',
        b'["Progress", {"lease": 1, "text": "half"}]',
        b'["Progress", {"lease": 1, "text": "[]"}]',
        pack_up(Logged(1, "shop", 20, 1.5, "sold", None))[4:].replace(b"20", b'"info"'),
        answer(b'"Done", {}', memory=b"null"),
        answer(b'"Done", {"result": {"a": 1}}'),
        answer(b'"Failed", {"error": null}'),
        answer(b'"Failed", {"error": "\\ud800"}'),
        answer(b'"Failed", {"error": "", "timed_out": "no"}'),
        answer(b'"Snoozed", {"delay": null}'),
        answer(b'"Cancelled", {"reason": ["a"]}'),
    ],
)
def test_anything_else_is_no_message(frame: bytes) -> None:
    with pytest.raises(ValueError, match="not a message of a child"):
        unpack_up(frame)


@pytest.mark.parametrize(
    ("odd", "sent"),
    [
        ({"created": 7}, Logged(0, "shop", 20, 7.0, "sold", None)),
        ({"name": None}, Logged(0, "None", 20, 1.5, "sold", None)),
        ({"levelno": 20.0}, Logged(0, "shop", 20, 1.5, "sold", None)),
        ({"created": "yesterday"}, None),
    ],
)
def test_a_record_that_is_not_as_it_should_be_is_sent_so_or_not_at_all(
    odd: dict[str, Any], sent: Logged | None
) -> None:
    told: list[Up] = []
    usual = {"name": "shop", "levelno": 20, "created": 1.5, "msg": "sold"}

    Forwarder(told.append).handle(logging.makeLogRecord(usual | odd))

    arrived = [unpack_up(frame) for message in told for frame in cut(pack_up(message))]
    assert arrived == ([] if sent is None else [sent])
