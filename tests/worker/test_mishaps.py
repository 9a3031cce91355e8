"""What goes wrong beside a handler ends its own job, and costs no slot."""

import threading
from collections.abc import Iterator

import pytest

from pgq.model import Done, Failed
from pgq.registry.app import Isolation
from pgq.runner.output import Tail
from pgq.runner.records import current
from tests.support.stage import Stage, job


class Unreadable(Tail):
    """Output for which there is no memory left."""

    def text(self) -> str | None:
        raise MemoryError("too much")


def fail() -> None:
    running = current.get()
    assert running is not None
    running.tail = Unreadable() if running.job.id == 1 else None
    raise ValueError("no luck")


async def fail_on_the_loop() -> None:
    fail()


@pytest.mark.parametrize("isolation", [Isolation.ASYNC, Isolation.THREAD])
async def test_output_that_cannot_be_read_fails_its_job_and_the_slot_goes_on(
    isolation: Isolation,
) -> None:
    stage = Stage()
    stage.app.job("work")(fail_on_the_loop if isolation is Isolation.ASYNC else fail)
    stage.open(isolation)
    stage.runner.submit([job(1), job(2)])

    for job_id, words in [(1, "MemoryError: too much"), (2, "ValueError: no luck")]:
        verdict = await stage.outcome(job_id)
        assert isinstance(verdict, Failed)
        assert verdict.error == words


@pytest.fixture
def no_threads() -> Iterator[None]:
    """The system gives no thread: none has room for a stack of so much."""
    before = threading.stack_size(1 << 46)
    yield
    threading.stack_size(before)


@pytest.mark.usefixtures("no_threads")
async def test_jobs_wait_while_the_system_gives_no_thread() -> None:
    stage = Stage()
    stage.app.job("work")(lambda: None)
    stage.open(Isolation.THREAD, capacity=2)

    stage.runner.submit([job(1), job(2)])

    assert (stage.runner.waiting, len(stage.complaints)) == (2, 1)
    assert "no more threads" in stage.complaints[0]
    threading.stack_size(0)
    stage.runner.submit([job(3)])
    for job_id in (1, 2, 3):
        assert await stage.outcome(job_id) == Done()
