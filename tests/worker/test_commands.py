"""Jobs that are shell commands (`pgq worker --exec`)."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support import jobs
from tests.support.jobs import Connection, Row
from tests.support.lifelines import lifeline
from tests.support.workers import drain

MINUTE = timedelta(minutes=1)

Execute = Callable[..., Row]


@pytest.fixture
def execute(shared: str, queue: Connection) -> Execute:
    """Runs one job by a shell command, and gives its row."""

    def execute(command: str, **options: Any) -> Row:
        job_id = jobs.enqueue(queue, "resize", **options)
        drain(shared, command=command)
        return jobs.row(queue, job_id)

    return execute


def test_exit_code_0_is_done(execute: Execute) -> None:
    row = execute("true")

    assert (row["status"], row["attempts"]) == ("done", 1)


def test_the_payload_comes_on_stdin_and_the_rest_in_the_environment(
    execute: Execute, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    names = "$PGQ_JOB_ID $PGQ_QUEUE $PGQ_KIND $PGQ_ATTEMPT $PGQ_MAX_ATTEMPTS $PGAPPNAME"

    row = execute(f'read -r line && echo "$line {names}" > {seen}', payload={"größe": [1, None]})

    assert row["status"] == "done"
    facts, _, application_name = seen.read_text().rstrip().rpartition(" ")
    assert facts == f'{{"größe": [1, null]}} {row["id"]} default resize 1 3'
    assert re.fullmatch(f"pgq-job-{row['id']}-[0-9a-f]{{16}}", application_name)


def test_a_payload_that_nobody_reads_does_no_harm(execute: Execute) -> None:
    assert execute("true", payload={"text": "x" * 1_000_000})["status"] == "done"


def test_a_large_payload_arrives_whole(execute: Execute) -> None:
    row = execute('test "$(wc -c)" = 1000013', payload={"text": "x" * 1_000_000})

    assert row["status"] == "done"


def test_exit_code_75_is_a_snooze(execute: Execute, queue: Connection) -> None:
    row = execute("exit 75")

    assert (row["status"], row["attempts"], row["snoozes"]) == ("pending", 0, 1)
    assert MINUTE >= jobs.due_in(queue, row["id"]) > 0.9 * MINUTE


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("echo fetching; echo no such file >&2; exit 4", "exit code 4: no such file"),
        ("exit 4", "exit code 4"),
        ("kill -SEGV $$", "was ended by SIGSEGV"),
        ("no-such-program", "exit code 127: "),
        ("if", "exit code 2: "),
        (r"printf 'a\000b\377c\n'; exit 1", r"exit code 1: a\x00b\xffc"),
        ("head -c 5000000 /dev/zero | tr '\\0' x; exit 1", "exit code 1: xxx"),
    ],
)
def test_anything_else_fails_with_the_end_of_the_output(
    execute: Execute, queue: Connection, command: str, error: str
) -> None:
    row = execute(command)

    assert (row["status"], row["attempts"]) == ("pending", 1)
    assert error in row["last_error"]
    (attempt,) = jobs.attempts(queue, row["id"])
    assert len(attempt["traceback"] or "") <= 4_000


def test_output_without_end_does_not_hold_a_command_up(execute: Execute) -> None:
    assert execute("head -c 20000000 /dev/zero")["status"] == "done"


def test_a_grandchild_is_not_waited_for_and_ends_with_its_command(
    execute: Execute, tmp_path: Path
) -> None:
    with lifeline(tmp_path / "line") as line:
        row = execute(f"exec 9>{tmp_path}/line; sleep 300 & echo hi")

        assert row["status"] == "done"
        assert line.heard() == ""


def test_a_timeout_ends_the_command_and_all_that_it_started(
    execute: Execute, queue: Connection, tmp_path: Path
) -> None:
    with lifeline(tmp_path / "line") as line:
        row = execute(
            f"exec 9>{tmp_path}/line; echo up >&9; (sleep 300 &); sleep 300",
            timeout=timedelta(milliseconds=300),
        )

        assert row["last_error"] == "timed out after 0.3s (ended by SIGTERM)"
        assert line.heard() == "up\n"
        assert line.heard() == ""
    (attempt,) = jobs.attempts(queue, row["id"])
    assert attempt["outcome"] == "timed out"


def test_a_command_that_ends_well_when_told_to_stop_has_timed_out(execute: Execute) -> None:
    row = execute(
        "trap 'exit 0' TERM; while :; do sleep 0.01; done", timeout=timedelta(milliseconds=300)
    )

    assert (row["status"], row["last_error"]) == (
        "pending",
        "timed out after 0.3s (ended by SIGTERM)",
    )


def test_any_kind_is_taken_unless_told(shared: str, queue: Connection) -> None:
    other, mine = jobs.enqueue(queue, "other"), jobs.enqueue(queue, "mine")

    drain(shared, command="true", kinds=["mine"])
    assert jobs.row(queue, mine)["status"] == "done"
    assert jobs.row(queue, other)["status"] == "pending"

    drain(shared, command="true")
    assert jobs.row(queue, other)["status"] == "done"
