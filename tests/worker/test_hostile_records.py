"""A record of any content breaks no handler, and passes for no other record."""

import logging
from typing import Any

import pytest

from pgq.runner.output import TAIL
from tests.support import jobs
from tests.support.jobs import Connection
from tests.worker.conftest import WorkOff

pytestmark = pytest.mark.usefixtures("talkative")
FORGED = "2030-01-31T08:00:00.000Z error shop: forged"
SHOP = logging.getLogger("shop")


class Unspeakable:
    def __str__(self) -> str:
        raise SystemExit(1)

    __repr__ = __str__


class Bottomless:
    def __str__(self) -> str:
        return str(self)


HOSTILE: dict[str, tuple[tuple[Any, ...], str]] = {
    "a broken argument": (("say %s", Unspeakable()), "say %s"),
    "a broken message": ((Unspeakable(),), "(its text cannot be read)"),
    "no end": (("say %s", Bottomless()), "say %s"),
    "wrong arguments": (("%d pages", "many"), "%d pages"),
    "too many arguments": (("nothing", 1, 2), "nothing"),
    "a lone surrogate": (("a\ud800b",), r"a\ud800b"),
    "a NUL": (("a\0b",), r"a\x00b"),
    "lines": (("one\r\n" + FORGED,), r"one\r\n" + FORGED),
    "other lines": (("one\u2028" + FORGED + "\x85\x1b[2J",), rf"one\u2028{FORGED}\x85\x1b[2J"),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_record_breaks_a_handler_or_passes_for_another_one(
    work_off: WorkOff, queue: Connection, hostile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the handlers of pytest make of such records is not what is looked at here.
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    arguments, expected = HOSTILE[hostile]

    def handler() -> None:
        SHOP.error(*arguments)
        raise ValueError("no luck")

    row = work_off(handler)

    assert row["last_error"] == "ValueError: no luck"
    assert jobs.output(queue, row["id"]) == [f"error shop: {expected}"]


def test_a_hostile_traceback_stays_indented(work_off: WorkOff, queue: Connection) -> None:
    def handler() -> None:
        try:
            raise OSError(f"one\n{FORGED}\r{FORGED}\u2028{FORGED}")
        except OSError:
            SHOP.exception("cannot fetch")
        raise ValueError("no luck")

    row = work_off(handler)

    head, *trace = jobs.output(queue, row["id"])
    assert head == "error shop: cannot fetch"
    assert len(trace) > 3
    assert all(line.startswith("  ") for line in trace)


def test_a_message_of_100_megabytes_is_kept_in_part(
    work_off: WorkOff, queue: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])

    def handler() -> None:
        SHOP.error("x" * 100_000_000 + " the end")
        raise ValueError("no luck")

    row = work_off(handler)

    (line,) = jobs.output(queue, row["id"])
    assert "characters cut" in line
    assert line.endswith(" the end")
    assert len(line) < TAIL
