"""Handlers in processes of their own: called, told and answered as they are elsewhere."""

import os
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import pgq
from tests.support import jobs
from tests.support.databases import wait_until
from tests.support.jobs import Connection, Row
from tests.support.workers import Workers, appears, drain, run_worker
from tests.worker import apart
from tests.worker.conftest import WorkOff

APP = ("--app", "tests.worker.apart:app")

Apart = Callable[..., Row]


@pytest.fixture
def work_apart(work_off: WorkOff) -> Apart:
    """Enqueue one job for a handler in a process, drain the queue, give the job's row."""

    def work_apart(handler: Callable[..., Any], **payload: Any) -> Row:
        return work_off(handler, payload, isolation="process")

    return work_apart


def test_a_handler_runs_in_a_process_of_its_own(work_apart: Apart) -> None:
    row = work_apart(apart.pid)

    assert (row["status"], row["attempts"]) == ("done", 1)
    assert row["result"] != os.getpid()


def test_an_async_handler_has_an_event_loop_there(work_apart: Apart) -> None:
    row = work_apart(apart.greet, name="Grüße\x07")

    assert row["result"] == {"name": "Grüße\x07", "attempt": 1, "kind": "work"}


def test_a_payload_comes_as_it_is(work_apart: Apart) -> None:
    numbers, text = list(range(100_000)), "x" * 100_000

    row = work_apart(apart.spell, numbers=numbers, text=text)

    assert row["result"] == [{"numbers": numbers, "text": text}, sum(numbers), text]


def test_a_payload_that_only_just_can_be_read_arrives(work_apart: Apart) -> None:
    tree: list[Any] = []
    for _ in range(450):
        tree = [tree]

    assert work_apart(apart.depth, tree=tree)["result"] == 450


def test_a_payload_that_does_not_fit_fails_for_good(work_apart: Apart) -> None:
    row = work_apart(apart.greet, nome="a typing error")

    assert (row["status"], row["attempts"]) == ("failed", 1)
    assert row["last_error"] == "payload does not fit: the payload lacks 'name'"


def test_a_payload_that_cannot_be_read_fails_for_good(shared: str, queue: Connection) -> None:
    app = pgq.App()
    app.job("work", isolation="process")(apart.depth)
    queue.execute(
        "insert into pgq.jobs (kind, payload)"
        """ values ('work', ('{"tree": 1' || repeat('0', 5000) || '}')::jsonb)"""
    )
    drain(shared, app)

    (row,) = jobs.rows(queue, "select status, last_error from pgq.jobs")
    assert row["status"] == "failed"
    assert row["last_error"].startswith("payload does not fit: it cannot be read: ")


def test_what_a_handler_returns_and_raises_means_the_same_there(
    work_apart: Apart, queue: Connection
) -> None:
    snoozed = work_apart(apart.snooze)
    assert (snoozed["status"], snoozed["attempts"], snoozed["snoozes"]) == ("pending", 0, 1)

    refused = work_apart(apart.refuse)
    assert (refused["status"], refused["last_error"]) == ("failed", "for good")

    later = work_apart(apart.try_later)
    assert (later["status"], later["last_error"]) == ("pending", "busy")
    assert timedelta(minutes=6) < jobs.due_in(queue, later["id"]) <= timedelta(minutes=7)

    left = work_apart(apart.leave_by_sys_exit)
    assert left["last_error"] == "SystemExit: 3"

    dropped = work_apart(apart.give_an_object)
    assert dropped["status"] == "done"
    assert "result dropped" in dropped["last_error"]


def test_an_exception_that_cannot_be_pickled_is_told_whole(
    work_apart: Apart, queue: Connection
) -> None:
    row = work_apart(apart.raise_two_words)

    assert row["last_error"] == "TwoWords: no luck"
    (attempt,) = jobs.attempts(queue, row["id"])
    assert 'raise TwoWords("no", "luck")' in attempt["traceback"]


def test_the_retry_policy_may_be_what_no_other_process_can_import(
    work_off: WorkOff, queue: Connection
) -> None:
    for handler in (apart.raise_two_words, apart.call_nothing):
        row = work_off(
            handler, isolation="process", retry=lambda attempt: timedelta(hours=10 * attempt)
        )
        assert timedelta(hours=9) < jobs.due_in(queue, row["id"]) <= timedelta(hours=10)


def test_a_child_that_a_handler_forks_does_not_answer_for_it(work_apart: Apart) -> None:
    row = work_apart(apart.fork_and_both_return)

    assert row["status"] == "done"
    assert row["result"] > 0


def test_a_process_has_the_name_and_the_place_of_its_attempt(work_apart: Apart) -> None:
    row = work_apart(apart.names)

    name, cwd, _ = row["result"]
    assert re.fullmatch(f"pgq-job-{row['id']}-[0-9a-f]{{16}}", name)
    assert cwd == str(Path.cwd())


def test_a_process_connects_under_the_name_of_its_attempt(work_apart: Apart) -> None:
    row = work_apart(apart.own_connection)

    name, secret, arguments = row["result"]
    assert name.startswith(f"pgq-job-{row['id']}-")
    assert not secret
    assert arguments == ["-c"]


def test_a_process_has_no_socket_of_the_worker(work_apart: Apart) -> None:
    assert len(work_apart(apart.descriptors)["result"]) == 2


def test_progress_is_seen_while_the_job_runs(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    job_id = jobs.enqueue(queue, "report progress")
    fleet.start(*APP)
    appears(tmp_path / "half")

    wait_until(queue, "select progress is not null from pgq.jobs where id = %s", job_id)
    (said,) = jobs.rows(queue, "select progress from pgq.jobs")
    (tmp_path / "go").touch()

    assert said["progress"] == {"fraction": 0.5, "note": "half way"}
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)


def test_two_jobs_run_at_the_same_time(
    shared: str, queue: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK", str(tmp_path))
    jobs.enqueue(queue, "meet", payload={"name": "a", "other": "b"})
    jobs.enqueue(queue, "meet", payload={"name": "b", "other": "a"})
    drain(shared, apart.app, concurrency=2)

    assert jobs.counted(queue)["done"] == 2


def test_a_process_that_holds_its_interpreter_holds_up_nothing_else(
    queue: Connection, fleet: Workers, tmp_path: Path
) -> None:
    worker = fleet.start(*APP, "-c", "1")
    busy = jobs.enqueue(queue, "hold the interpreter", payload={"seconds": 6})
    appears(tmp_path / "started")
    beat = "select beat_at from pgq.workers where id = %s"
    before = jobs.value(queue, beat, worker.id)

    for _ in range(3):
        job_id = jobs.enqueue(queue, "tick")
        wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", job_id)
    wait_until(queue, f"select ({beat}) > %s", worker.id, before)

    assert jobs.row(queue, busy)["status"] == "running"
    wait_until(queue, "select status = 'done' from pgq.jobs where id = %s", busy)
    assert jobs.row(queue, busy)["attempts"] == 1


def test_a_handler_that_no_process_can_import_is_refused_at_the_start(
    tmp_path: Path, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrapped.py").write_text(
        "import functools, pgq\n"
        "app = pgq.App()\n"
        "def other(f):\n"
        "    return functools.wraps(f)(lambda: f())\n"
        "@other\n"
        "@app.job('work', isolation='process')\n"
        "def handler(): ...\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)

    done = run_worker("--app", "wrapped:app", dsn=shared)

    assert done.returncode == 2
    assert done.stderr.startswith("pgq: handler wrapped.handler: a process would find something")
    assert len(done.stderr.splitlines()) == 1
