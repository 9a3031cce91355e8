"""The worker's log: one line an event, for people or for machines, whatever a job says."""

import json
import re
from typing import Any

import pytest

import pgq
from tests.support import jobs
from tests.support.jobs import Connection
from tests.support.workers import drain

FORGED = '2030-01-31T08:00:00.000Z error forged by="nobody" worker=w-1'
HOSTILE = f"boom\r\n{FORGED}\x1b[31m\u2028{FORGED}\x85{FORGED}\u202e"
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (info|warning|error) (\w.*)")
FIELD = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|[^\s"=\\]+)')


def hostile_app() -> pgq.App:
    app = pgq.App()

    @app.job("fail\n" + FORGED)
    async def fail() -> None:
        raise ValueError(HOSTILE)

    @app.job("bury", queue="q\n" + FORGED)
    def bury(**_: Any) -> None:
        raise pgq.Fail(HOSTILE)

    @app.job("reject")
    async def reject() -> None: ...

    @app.job("cancel")
    async def cancel() -> None:
        raise pgq.Cancel('ends with a backslash \\ and a quote "')

    return app


def worked_off(shared: str, queue: Connection, style: str) -> None:
    """Run jobs that say hostile things, and log in this style."""
    app = hostile_app()
    for kind, handler in app.handlers.items():
        jobs.enqueue(queue, kind, queue=handler.queue, payload={})
    jobs.enqueue(queue, "reject", payload={HOSTILE: HOSTILE})
    drain(shared, app, log_format=style)


def test_nothing_a_job_says_can_forge_a_line_or_a_field(
    shared: str, queue: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    worked_off(shared, queue, "text")

    events = {}
    for line in capsys.readouterr().err.splitlines():
        match = LINE.fullmatch(line)
        assert match, line
        fields = FIELD.findall(match[2])
        event = FIELD.sub("", match[2])
        assert re.fullmatch("[a-z ]+", event), line
        assert len(dict(fields)) == len(fields), line
        events[event, dict(fields).get("kind")] = dict(fields)
    assert events["job cancelled", "cancel"]["reason"] == (
        r'"ends with a backslash \\ and a quote \""'
    )
    assert {event for event, _ in events} >= {"attempt failed", "job failed for good"}


def test_a_machine_reads_what_happened_as_it_was(
    shared: str, queue: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    worked_off(shared, queue, "json")

    lines = [json.loads(line) for line in capsys.readouterr().err.split("\n")[:-1]]
    assert all(list(line)[:3] == ["time", "level", "event"] for line in lines)
    (failed,) = (line for line in lines if line["event"] == "attempt failed")
    assert failed["kind"] == "fail\n" + FORGED
    assert failed["error"] == f"ValueError: {HOSTILE}"
    assert (failed["attempt"], failed["queue"]) == ("1/3", "default")


def test_a_level_leaves_out_what_is_below_it(
    shared: str, queue: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs.enqueue(queue)

    drain(shared, command="exit 1", log_level="warning")

    (line,) = capsys.readouterr().err.splitlines()
    assert " warning attempt failed " in line


def test_the_log_names_the_database_without_its_password(
    shared: str, queue: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    drain(f"{shared} password=secret", command="true")

    written = capsys.readouterr().err
    assert queue.info.dbname in written
    assert "secret" not in written
