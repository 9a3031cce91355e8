"""How processes are read and described."""

import pytest

from pgq.model import Cancelled, Done, Failed
from pgq.runner.group import Process, ending, parse_stat
from pgq.runner.grouped import naming

REST = "4194560 120 0 0 0 3 1 0 0 20 0 1 0 98765 1000 1 18446744073709551615"


@pytest.mark.parametrize("name", ["sh", "a b", "a) R 1 1 1 (", ""])
def test_a_process_is_read_whatever_its_name(name: str) -> None:
    found = parse_stat(f"42 ({name}) S 7 8 9 0 -1 {REST}\n")

    assert found == Process(42, parent=7, group=8, session=9, state="S", started="98765", name=name)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with exit code 0"),
        (3, "ended with exit code 3"),
        (-11, "was ended by SIGSEGV"),
        (-40, "was ended by signal 40"),
    ],
)
def test_an_ending_is_told_in_words(code: int, words: str) -> None:
    assert ending(code) == words


def test_what_could_not_be_ended_is_named() -> None:
    left = [Process(42, 1, 42, 42, "D", "1", "tar"), Process(43, 1, 42, 42, "D", "1", "sh")]

    assert naming(Failed("timed out"), left) == Failed(
        "timed out; still running: 42 (tar), 43 (sh)"
    )
    assert naming(Cancelled("killed"), left[:1]) == Cancelled("killed; still running: 42 (tar)")
    assert naming(Done(), left) == Done()
    assert naming(Failed("timed out"), []) == Failed("timed out")
