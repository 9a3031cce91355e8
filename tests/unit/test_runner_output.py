"""The end of an output, whatever was written."""

from datetime import timedelta

import pytest

from pgq.model import Buried, Cancelled, Done, Failed, HandedBack, Snoozed, Verdict
from pgq.runner.output import TAIL, Tail, with_output


def tail(*chunks: bytes) -> Tail:
    made = Tail()
    for chunk in chunks:
        made.feed(chunk)
    return made


def test_a_short_output_is_kept_as_it_is() -> None:
    assert tail().text() is None
    assert tail(b" \n", b"").text() is None
    assert tail(b"one\n", b"two\n").text() == "one\ntwo"


def test_a_long_one_begins_with_a_whole_line_and_says_that_there_was_more() -> None:
    text = tail(*(b"line %d\n" % number for number in range(10_000))).text()

    assert text is not None
    first, second, *_, last = text.split("\n")
    assert (first, second[:5], last) == ("...", "line ", "line 9999")
    assert TAIL - 100 < len(text) <= TAIL + 4


@pytest.mark.parametrize("size", [TAIL, TAIL + 1, 2 * TAIL, 100_000_000])
def test_a_line_without_end_is_cut_between_characters(size: int) -> None:
    written = ("é" * (size // 2 + 1)).encode()

    text = tail(written[1:]).text() or ""

    assert set(text) <= set(r"é...\xa9" + "\n")
    assert len(text) <= TAIL
    assert text.startswith("...\né") or size <= TAIL


def test_it_is_bounded_however_it_is_fed() -> None:
    made = tail(b"x" * 10, b"y" * 50_000_000, b"z" * 5)
    for _ in range(100):
        made.feed(b"w" * 9_000)

    assert made.text() == "...\n" + "w" * TAIL


def test_bytes_that_are_no_text_are_shown_escaped() -> None:
    assert tail(b"\xff\x00a").text() == r"\xff\x00a"
    assert len(tail(b"\xff" * 10 * TAIL).text() or "") <= 2 * TAIL + 100


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Failed("no"), Failed("no", output="said")),
        (Buried("no"), Buried("no", output="said")),
        (Cancelled("no"), Cancelled("no", output="said")),
        (Done(), Done()),
        (Snoozed(timedelta(1)), Snoozed(timedelta(1))),
        (HandedBack(), HandedBack()),
    ],
)
def test_it_goes_with_attempts_that_did_not_succeed(verdict: Verdict, expected: Verdict) -> None:
    assert with_output(verdict, tail(b"said\n")) == expected
