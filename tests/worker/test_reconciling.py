"""What the database says of a worker and what its process knows come to agree."""

import asyncio

import pytest

import pgq
import pgq.worker.reconcile
from tests.support import jobs
from tests.support.databases import PATIENCE
from tests.support.jobs import Connection
from tests.support.workers import drain


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgq.worker.reconcile, "EVERY", 0.1)


def test_a_job_that_runs_nowhere_though_its_worker_lives_is_handed_back(
    queue: Connection, shared: str
) -> None:
    app = pgq.App()
    strange = jobs.enqueue(queue, "strange")

    @app.job("hold")
    async def hold() -> None:
        queue.execute(
            "update pgq.jobs set status = 'running', lease = 1, attempts = 1, locked_at = now(),"
            " worker_id = (select id from pgq.workers) where id = %s",
            (strange,),
        )
        async with asyncio.timeout(PATIENCE):
            while jobs.row(queue, strange)["status"] == "running":  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    jobs.enqueue(queue, "hold")
    drain(shared, app, concurrency=2)

    row = jobs.row(queue, strange)
    assert (row["status"], row["attempts"], row["losses"]) == ("pending", 0, 0)


def test_a_handler_whose_job_was_taken_by_force_is_stopped(queue: Connection, shared: str) -> None:
    app = pgq.App()
    ended: list[str] = []

    @app.job("taken")
    async def taken(job: pgq.Job) -> None:
        queue.execute("select pgq.kill(array[%s::bigint], p_force => true)", (job.id,))
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    job_id = jobs.enqueue(queue, "taken")
    drain(shared, app)

    assert ended == ["cancelled"]
    row = jobs.row(queue, job_id)
    assert (row["status"], row["attempts"]) == ("cancelled", 1)


def test_a_job_that_was_taken_is_not_said_to_be_handed_back(
    queue: Connection, shared: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app = pgq.App()
    runs: list[int] = []

    @app.job("taken")
    async def taken(job: pgq.Job) -> None:
        runs.append(job.id)
        if len(runs) == 1:
            queue.execute("select pgq.requeue(array[%s::bigint], true)", (job.id,))
            async with asyncio.timeout(PATIENCE):
                await asyncio.Event().wait()

    job_id = jobs.enqueue(queue, "taken")
    drain(shared, app)

    said = capsys.readouterr().err
    assert f"lease lost job={job_id}" in said
    assert "handed back" not in said
    assert (len(runs), jobs.row(queue, job_id)["status"]) == (2, "done")
