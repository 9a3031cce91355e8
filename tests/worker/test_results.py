"""A result that cannot be kept: the job is done all the same, with a note, and not run again."""

from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

import pgq
from tests.support import jobs
from tests.support.jobs import Connection
from tests.worker.conftest import WorkOff


@dataclass
class Receipt:
    number: int


class Stubborn:
    """Like a model whose serializer has a bug."""

    def model_dump(self, mode: str) -> object:
        raise KeyError(mode)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


UNKEPT: dict[str, tuple[Any, str]] = {
    "nan": ({"ratio": float("nan")}, "NaN is no JSON number at $.ratio"),
    "infinity": ([1.0, float("inf")], "a number beyond the range of a double at $[1]"),
    "nul": ("a\0b", "a NUL character (\\u0000), which PostgreSQL cannot store, at $"),
    "surrogate": ("a\ud800b", "a lone surrogate, which is not text, at $"),
    "large": ("x" * 2_000_000, "2000002 bytes, and at most 1048576 are kept"),
    "bytes": (b"picture", "a value of type bytes is no JSON at $"),
    "deep": (nested(100_000), "nested too deeply"),
    "broken": (Stubborn(), "KeyError: 'json'"),
}


@pytest.mark.parametrize("name", UNKEPT)
def test_a_result_that_cannot_be_kept_leaves_the_job_done_with_a_note(
    work_off: WorkOff, queue: Connection, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result, reason = UNKEPT[name]
    runs = []

    async def handler() -> Any:
        runs.append(1)
        return result

    row = work_off(handler)

    assert (row["status"], row["result"], len(runs)) == ("done", None, 1)
    assert row["last_error"].startswith("result dropped: ")
    assert reason in row["last_error"]
    lines = capsys.readouterr().err.splitlines()
    (said,) = [line for line in lines if " job done without its result " in line]
    assert f" warning job done without its result job={row['id']} kind=work " in said
    assert jobs.attempts(queue, row["id"]) == []
    with pytest.raises(pgq.ResultDropped, match="result dropped"):
        pgq.wait(queue, row["id"])


@pytest.mark.parametrize(
    ("result", "kept"),
    [
        (None, None),
        (0, 0),
        ([], []),
        (Receipt(7), {"number": 7}),
        ("a\\u0000b", "a\\u0000b"),
        ({"text": "grüße"}, {"text": "grüße"}),
    ],
)
def test_a_result_comes_back_as_it_was(
    work_off: WorkOff, shared: str, result: object, kept: object
) -> None:
    row = work_off(lambda: result)

    with psycopg.connect(shared) as conn:
        assert pgq.wait(conn, row["id"]) == kept
