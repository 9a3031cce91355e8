"""Jobs side by side: how many at once, and what one may do to another."""

import asyncio
import gc
import threading
from contextvars import ContextVar
from datetime import timedelta
from signal import SIGTERM

import pytest

import pgq
from pgq.worker import Options
from tests.support import jobs
from tests.support.jobs import Connection
from tests.support.workers import drain, run, tell_self

PATIENCE = 10.0

seen: ContextVar[str] = ContextVar("seen", default="nothing")


def test_a_hundred_async_jobs_run_at_once(shared: str, queue: Connection) -> None:
    app = pgq.App()
    together = asyncio.Barrier(100)

    @app.job("meet")
    async def meet() -> None:
        async with asyncio.timeout(PATIENCE):
            await together.wait()

    jobs.fill(queue, 100, "meet")
    drain(shared, app)

    assert jobs.counted(queue)["done"] == 100


def test_threads_run_as_many_jobs_as_they_are_told(shared: str, queue: Connection) -> None:
    app = pgq.App()
    together = threading.Barrier(5)

    @app.job("meet")
    def meet() -> None:
        together.wait(PATIENCE)

    jobs.fill(queue, 5, "meet")
    drain(shared, app, concurrency=5)

    assert jobs.counted(queue)["done"] == 5


@pytest.mark.parametrize("isolation", ["async", "thread"])
def test_the_concurrency_is_a_limit(shared: str, queue: Connection, isolation: str) -> None:
    app = pgq.App()
    inside = 0
    most = 0
    lock = threading.Lock()

    def enter() -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)

    def leave() -> None:
        nonlocal inside
        with lock:
            inside -= 1

    async def on_the_loop() -> None:
        enter()
        await asyncio.sleep(0.002)
        leave()

    def in_a_thread() -> None:
        enter()
        threading.Event().wait(0.002)
        leave()

    app.job("busy")(on_the_loop if isolation == "async" else in_a_thread)
    jobs.fill(queue, 60, "busy")
    drain(shared, app, concurrency=3)

    assert jobs.counted(queue)["done"] == 60
    assert most == 3


def test_a_slow_kind_leaves_another_lane_free(shared: str, queue: Connection) -> None:
    app = pgq.App()
    freed = threading.Event()

    @app.job("slow")
    def slow() -> None:
        assert freed.wait(PATIENCE)

    @app.job("quick")
    async def quick() -> None:
        freed.set()

    for _ in range(5):
        jobs.enqueue(queue, "slow", priority=10)
    jobs.enqueue(queue, "quick")
    drain(shared, app, concurrency=1)

    assert jobs.counted(queue) == {"done": 6, "failed": 0, "retried": 0}


def test_a_context_variable_does_not_reach_the_next_job(shared: str, queue: Connection) -> None:
    app = pgq.App()

    @app.job("set")
    async def set_it() -> str:
        before = seen.get()
        seen.set("mine")
        return before

    @app.job("set after a wait")
    async def set_later() -> str:
        before = seen.get()
        await asyncio.sleep(0)
        seen.set("mine")
        return before

    @app.job("get")
    async def get_it() -> str:
        return seen.get()

    kinds = ["set", "get", "set", "set after a wait", "get", "set after a wait"]
    ids = [jobs.enqueue(queue, kind) for kind in kinds]
    drain(shared, app)  # claimed together, they share a task

    assert {jobs.row(queue, job_id)["result"] for job_id in ids} == {"nothing"}


class Incomparable:
    """A value whose comparison raises, as that of an array does."""

    def __eq__(self, _: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]


def test_a_context_value_that_cannot_be_compared_harms_nobody(
    shared: str, queue: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    app = pgq.App()
    value: ContextVar[object] = ContextVar("value")

    @app.job("set")
    async def set_it() -> bool:
        value.set(Incomparable())
        return True

    ids = [jobs.enqueue(queue, "set") for _ in range(3)]
    outer = value.set(Incomparable())
    drain(shared, app)  # claimed together, they share a task
    value.reset(outer)

    assert all(jobs.row(queue, job_id)["result"] is True for job_id in ids)
    gc.collect()
    assert caplog.messages == []  # asyncio tells of tasks that ended with an error


def test_a_job_that_cancels_its_own_task_harms_no_other(shared: str, queue: Connection) -> None:
    app = pgq.App()

    @app.job("cancel myself")
    async def cancel_myself() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "done before it struck"

    @app.job("wait")
    async def wait() -> str:
        await asyncio.sleep(0)
        return "undisturbed"

    ids = [jobs.enqueue(queue, kind) for kind in ("cancel myself", "wait", "wait")]
    drain(shared, app)  # claimed together, they share a task

    assert [jobs.row(queue, job_id)["result"] for job_id in ids] == [
        "done before it struck",
        "undisturbed",
        "undisturbed",
    ]


def test_asyncios_own_tools_work_in_a_handler(shared: str, queue: Connection) -> None:
    app = pgq.App()

    @app.job("use them")
    async def use_them() -> list[str]:
        result = []
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            result.append("timeout")
        async with asyncio.TaskGroup() as group:
            part = group.create_task(asyncio.sleep(0, "group"))
        result.append(part.result())
        task = asyncio.current_task()
        assert task is not None
        result.append(f"{task.cancelling()} cancelling")
        return result

    first, second = jobs.enqueue(queue, "use them"), jobs.enqueue(queue, "use them")
    drain(shared, app, concurrency=1)

    expected = ["timeout", "group", "0 cancelling"]
    assert jobs.row(queue, first)["result"] == expected
    assert jobs.row(queue, second)["result"] == expected


def test_a_job_taken_back_by_force_may_run_beside_itself_and_ends_once(
    shared: str, queue: Connection
) -> None:
    app = pgq.App()
    again = asyncio.Event()
    runs = []

    @app.job("twice")
    async def twice(job: pgq.Job) -> str:
        runs.append(job.attempt)
        if len(runs) == 1:
            jobs.requeue(queue, job.id, force=True)
            async with asyncio.timeout(PATIENCE):
                await again.wait()
            return "first"
        again.set()
        await asyncio.sleep(0.05)
        return "second"

    job_id = jobs.enqueue(queue, "twice")
    drain(shared, app)

    assert runs == [1, 1]
    assert jobs.row(queue, job_id)["result"] == "second"
    assert jobs.counted(queue)["done"] == 1


def test_a_thread_that_gets_free_has_its_next_job_at_once_beside_an_idle_lane(
    shared: str, queue: Connection
) -> None:
    app = pgq.App()

    @app.job("idle")
    async def idle() -> None: ...

    ran = 0

    @app.job("long")
    def long(job: pgq.Job) -> None:
        nonlocal ran
        job.cancelled.wait(1.3)
        ran += 1
        if ran == 2:
            tell_self(SIGTERM)

    jobs.fill(queue, 2, "long")
    assert run(Options(dsn=shared, app=app, concurrency=1, poll=timedelta(hours=1))) == 0

    # A rest that did not end with the room would have grown to as long as the job took.
    row = queue.execute(
        "select max(locked_at) - min(finished_at), max(finished_at - locked_at) from pgq.jobs"
    ).fetchone()
    assert row is not None
    gap, job_time = row
    assert gap < job_time / 4
