"""The worker's log: one line an event, for people or for machines, whatever a job says."""

import json
import logging
import os
import pty
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import pgq
from tests.support import jobs
from tests.support.jobs import Connection
from tests.support.workers import PROGRAM, ROOT, Workers, drain, run_worker

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


# What the application logs, of workers in processes of their own: pytest has its own handlers.

APP = ("--app", "tests.worker.handlers:app", "--drain")


def test_what_a_handler_logs_is_a_line_that_names_its_job(
    fleet: Workers, queue: Connection
) -> None:
    job_id = jobs.enqueue(queue, "speak", payload={"words": f"hello\n{FORGED}"})

    worker = fleet.start(*APP)

    line = worker.seen("log")
    assert worker.ended() == 0
    time, *rest = line.items()
    assert time[0] == "time"
    assert rest == [
        ("level", "info"),
        ("event", "log"),
        ("message", f"hello\n{FORGED}"),
        ("logger", "shop"),
        ("job", job_id),
        ("kind", "speak"),
    ]


def test_what_a_handler_logs_cannot_forge_a_line_or_a_field_for_people(
    shared: str, queue: Connection
) -> None:
    first = jobs.enqueue(queue, "speak", payload={"words": f'{HOSTILE}" job=9 \\'})
    second = jobs.enqueue(queue, "fail to speak", payload={"words": HOSTILE})

    lines = run_worker(*APP, dsn=shared).stderr.splitlines()

    spoken = [line for line in lines if " log " in line]
    for line, job_id in zip(spoken, (first, second), strict=True):
        match = LINE.fullmatch(line)
        assert match, line
        assert FIELD.sub("", match[2]) == "log"
        assert dict(FIELD.findall(match[2]))["job"] == str(job_id)
    assert f'message="{FORGED}' not in spoken[0]
    traced = [line for line in lines if not LINE.fullmatch(line)]
    assert traced[0] == "  Traceback (most recent call last):"
    assert all(line.startswith("  ") and line.isprintable() for line in traced)
    assert any("OSError: boom" in line for line in traced)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("debug", ["debug", "info", "warning"]),
        ("info", ["info", "warning"]),
        ("warning", ["warning"]),
    ],
)
def test_the_level_of_the_log_is_that_of_the_application_too(
    fleet: Workers, queue: Connection, asked: str, expected: list[str]
) -> None:
    for level in (logging.DEBUG, logging.INFO, logging.WARNING):
        jobs.enqueue(queue, "speak", payload={"words": "hello", "level": level})

    worker = fleet.start(*APP, "--log-level", asked)

    assert worker.ended() == 0
    spoken = [line for line in worker.log("log") if line["logger"] == "shop"]
    assert sorted(line["level"] for line in spoken) == expected


def test_an_application_that_set_up_its_logging_keeps_it(shared: str, queue: Connection) -> None:
    jobs.enqueue(queue, "speak", payload={"words": "hello"})

    ended = run_worker("--app", "tests.worker.speaking:app", "--drain", dsn=shared)

    assert ended.stdout == "shop says hello\n"
    assert " worker started " in ended.stderr
    assert "hello" not in ended.stderr


@contextmanager
def hung_up(kind: str) -> Iterator[int]:
    """A descriptor for writing whose other end is closed in the block, after a first read."""
    reading, writing = pty.openpty() if kind == "terminal" else os.pipe()
    try:
        yield writing
        os.close(writing)
        os.read(reading, 1)
    finally:
        os.close(reading)


@pytest.mark.parametrize("kind", ["terminal", "pipe"])
def test_a_worker_goes_on_when_nobody_can_read_its_log(
    shared: str, queue: Connection, kind: str
) -> None:
    for _ in range(20):
        jobs.enqueue(queue, "speak", payload={"words": "hello" * 1000})
    command = [PROGRAM, "--dsn", shared, "worker", *APP, "--queue", "default"]
    with hung_up(kind) as stderr:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=stderr)

    assert process.wait(timeout=20) == 0
    assert jobs.rows(queue, "select status, count(*) from pgq.jobs group by 1") == [
        {"status": "done", "count": 20}
    ]
