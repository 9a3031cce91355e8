"""A pool of child processes, without a worker: what it starts, gives again, and leaves."""

import gc
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from signal import SIGKILL, SIGSTOP
from typing import Any

import pytest

from pgq.model import ClaimedJob, Done, Verdict
from pgq.runner.interrupt import Stop
from pgq.runner.keeper import Keeper
from pgq.runner.pool import Pool
from pgq.runner.process import process_perform
from pgq.runner.spawned import Recycling
from pgq.runner.thread import Perform
from tests.support import stage
from tests.support.databases import PATIENCE
from tests.support.lifelines import lifeline
from tests.support.processes import children
from tests.worker import apart


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    keeper = Keeper()
    yield keeper
    keeper.close()


@pytest.fixture
def pool(keeper: Keeper) -> Iterator[Pool]:
    pool = Pool(keeper, Recycling(jobs=1000, megabytes=512))
    yield pool
    pool.close()


@pytest.fixture
def perform(pool: Pool) -> Perform:
    return process_perform(apart.app.handlers, pool, stage.Stage().backing())


def job(kind: str, **payload: Any) -> ClaimedJob:
    return stage.job(kind=kind, timeout=timedelta(hours=1))._replace(payload=payload)


def pid_of(verdict: Verdict | None) -> int:
    """In which process a job of kind `pid` ran."""
    assert isinstance(verdict, Done)
    assert verdict.result is not None
    return int(verdict.result)


def begins(stop: Stop) -> bool:
    """Wait for the time of a job to begin."""
    until = time.monotonic() + PATIENCE
    while stop.deadline is None and time.monotonic() < until:
        time.sleep(0.001)
    return stop.deadline is not None


def test_a_process_that_nobody_can_guard_is_not_left_behind(keeper: Keeper, pool: Pool) -> None:
    before = children(os.getpid())
    keeper.close()

    with pytest.raises(OSError, match="the worker ends"):
        pool.take()

    gc.collect()  # what was left open would complain
    assert set(children(os.getpid())) <= set(before)


def test_a_closed_pool_starts_nothing(pool: Pool) -> None:
    pool.close()
    before = children(os.getpid())

    with pytest.raises(OSError, match="the worker ends"):
        pool.take()

    assert children(os.getpid()) == before


def test_a_job_goes_to_another_process_if_its_own_ends_before_it_begins(perform: Perform) -> None:
    first = pid_of(perform(job("pid"), Stop()))
    os.kill(first, SIGSTOP)
    stop = Stop()
    with ThreadPoolExecutor(1) as thread:
        verdict = thread.submit(perform, job("pid"), stop)
        sent = begins(stop)
        os.kill(first, SIGKILL)

        assert sent
        assert pid_of(verdict.result(PATIENCE)) != first


def test_what_a_job_left_in_its_process_ends_with_the_process(
    pool: Pool, perform: Perform, tmp_path: Path
) -> None:
    with lifeline(tmp_path / "line") as line:
        assert isinstance(perform(job("leave a child", line=f"{tmp_path}/line"), Stop()), Done)
        assert line.heard() == "up\n"

        pool.close()

        assert line.heard() == ""
