"""How far a running job is, as its handler says it and people read it."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import pgq
from pgq.registry.job import Tools
from tests.support import jobs
from tests.support.jobs import Connection
from tests.support.stage import job
from tests.worker.conftest import WorkOff

PATIENCE = 20.0


def told(note: Callable[[str], None]) -> pgq.Job:
    """A job whose worker takes what it says."""
    plain = job()
    return pgq.Job(
        plain.id, plain.queue, plain.kind, {}, 0, plain.scheduled_at, 1, 3, None,
        threading.Event(), Tools("", "", note),
    )  # fmt: skip


def until_said(dsn: str, expected: dict[str, Any]) -> None:
    """Wait until the only job has this progress."""
    deadline = time.monotonic() + PATIENCE
    with psycopg.connect(dsn, autocommit=True) as conn:
        while (said := jobs.value(conn, "select progress from pgq.jobs")) != expected:
            assert time.monotonic() < deadline, said
            time.sleep(0.02)


@pytest.mark.parametrize("isolation", ["async", "thread"])
def test_people_see_the_latest_word_while_the_job_runs(
    work_off: WorkOff, shared: str, isolation: str
) -> None:
    last = {"fraction": 0.4, "note": "page 2 of 5"}

    async def on_the_loop(job: pgq.Job) -> None:
        job.progress(0.2)
        job.progress(0.4, "page 2 of 5")
        await asyncio.to_thread(until_said, shared, last)

    def in_a_thread(job: pgq.Job) -> None:
        for page in range(100_000):
            job.progress(page / 1e6, f"page {page}")
        job.progress(0.4, "page 2 of 5")
        until_said(shared, last)

    row = work_off(on_the_loop if isolation == "async" else in_a_thread)

    assert (row["status"], row["progress"]) == ("done", last)


def test_a_job_that_ends_at_once_leaves_nothing_to_write(
    work_off: WorkOff, queue: Connection
) -> None:
    async def handler(job: pgq.Job) -> None:
        job.progress(1)

    assert work_off(handler)["progress"] is None
    assert jobs.value(queue, "select count(*) from pgq.jobs where progress is not null") == 0


@pytest.mark.parametrize(
    "fraction", [float("nan"), float("inf"), -1, -0.001, 1.001, 2, 10**400, "0.5", "", None, [], 1j]
)
def test_a_fraction_is_from_0_to_1(fraction: Any) -> None:
    said: list[str] = []

    with pytest.raises(ValueError, match="progress: give a fraction from 0 to 1, not "):
        told(said.append).progress(fraction)

    assert said == []


@pytest.mark.parametrize(
    ("fraction", "note", "expected"),
    [
        (0, None, '{"fraction": 0.0}'),
        (True, "", '{"fraction": 1.0, "note": ""}'),
        (1 / 3, 'say "x"\n', '{"fraction": 0.3333, "note": "say \\"x\\"\\n"}'),
        (1, "a\0b\ud800c", '{"fraction": 1.0, "note": "a\\\\x00b\\\\ud800c"}'),
    ],
)
def test_a_note_is_made_fit_for_the_database(
    fraction: float, note: str | None, expected: str
) -> None:
    said: list[str] = []

    told(said.append).progress(fraction, note)

    assert said == [expected]


def test_a_note_of_any_length_is_short() -> None:
    said: list[str] = []

    told(said.append).progress(0.5, "x" * 100_000_000)

    assert len(said[0]) < 300
    assert "characters cut" in said[0]


def test_a_job_that_no_worker_runs_may_say_it_too() -> None:
    plain = job()
    pgq.Job(
        plain.id, plain.queue, plain.kind, {}, 0, plain.scheduled_at, 1, 3, None, threading.Event()
    ).progress(0.5, "in a test")
