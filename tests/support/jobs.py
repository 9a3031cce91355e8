"""The queue's verbs in few words, for tests that go step by step.

Each is one call of a function of the schema, as a worker, a producer or an operator makes it.
Nothing here decides anything.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import psycopg
from psycopg.rows import dict_row

import pgq
from pgq import db
from pgq.calls import jobs as job_calls
from pgq.calls import workers as worker_calls
from pgq.calls.jobs import Place
from pgq.model import Buried, Cancelled, ClaimedJob, Done, Failed, HandedBack, Snoozed

Connection: TypeAlias = psycopg.Connection[Any]
Row: TypeAlias = dict[str, Any]
Settlement: TypeAlias = Failed | Buried | Snoozed | Cancelled | HandedBack

LONG_SILENCE = timedelta(seconds=10)
"""Longer than the four seconds after which a worker without its lock is dead."""


def enqueue(conn: Connection, kind: str = "work", **options: Any) -> int:
    """Enqueue one job; gives its id."""
    return pgq.enqueue(conn, kind, **options).id


def fill(conn: Connection, count: int, kind: str = "work") -> None:
    """Insert many pending jobs."""
    conn.execute("insert into pgq.jobs (kind) select %s from generate_series(1, %s)", (kind, count))


def register(
    conn: Connection,
    *queues: str,
    kinds: Sequence[str] | None = None,
    lock_key: int | None = None,
) -> int:
    """Make a worker known; gives its id. Its queue is `default` unless told."""
    call = worker_calls.register(
        host="testhost",
        pid=4711,
        version="0",
        queues=queues or ("default",),
        kinds=kinds,
        concurrency=10,
        lock_key=lock_key,
    )
    return db.run(conn, call)


def claim(
    conn: Connection,
    worker_id: int,
    limit: int = 100,
    *,
    queues: Sequence[str] = ("default",),
    kinds: Sequence[str] | None = None,
    places: Sequence[Place] | None = None,
    turn: bool = False,
) -> list[ClaimedJob]:
    """Claim jobs, by a full look unless places are given."""
    call = job_calls.claim(
        worker_id, queues=queues, limit=limit, kinds=kinds, places=places, turn=turn
    )
    return db.run(conn, call).jobs


def claim_one(conn: Connection, worker_id: int) -> ClaimedJob:
    """Claim exactly one job."""
    (job,) = claim(conn, worker_id, 1)
    return job


def finish(
    conn: Connection, worker_id: int, *jobs: ClaimedJob, verdict: Done | None = None
) -> list[int]:
    """Mark jobs done; gives the ids whose lease was lost."""
    return db.run(conn, job_calls.finish(worker_id, [(job, verdict or Done()) for job in jobs]))


def settle(conn: Connection, worker_id: int, verdict: Settlement, *jobs: ClaimedJob) -> list[int]:
    """End attempts that are not done; gives the ids whose lease was lost."""
    return db.run(conn, job_calls.settle(worker_id, [(job, verdict) for job in jobs]))


def reap(conn: Connection, limit: int = 1000) -> dict[int, str]:
    """Give dead workers' jobs back; gives what became of each."""
    reaped = db.run(conn, worker_calls.reap(limit=limit))
    return {job.job_id: job.status for job in reaped}


def cancel(conn: Connection, *ids: int) -> list[str]:
    """Ask jobs to end; gives an outcome a job, in order of id."""
    rows = conn.execute("select outcome from pgq.cancel(%s) order by id", (list(ids),))
    return [outcome for (outcome,) in rows]


def kill(conn: Connection, *ids: int, force: bool = False) -> list[str]:
    """Make jobs end; gives an outcome a job, in order of id."""
    rows = conn.execute("select outcome from pgq.kill(%s, %s) order by id", (list(ids), force))
    return [outcome for (outcome,) in rows]


def requeue(conn: Connection, *ids: int, force: bool = False) -> list[str]:
    """Send jobs back; gives an outcome a job, in order of id."""
    rows = conn.execute("select outcome from pgq.requeue(%s, %s) order by id", (list(ids), force))
    return [outcome for (outcome,) in rows]


def fall_silent(conn: Connection, worker_id: int, since: timedelta = LONG_SILENCE) -> None:
    """Make a worker's last beat as old as this."""
    conn.execute(
        "update pgq.workers set beat_at = now() - %s::interval where id = %s", (since, worker_id)
    )


def die(conn: Connection, worker_id: int) -> None:
    """Mark a worker dead, as a reaper would."""
    conn.execute("update pgq.workers set died_at = now() where id = %s", (worker_id,))


def row(conn: Connection, job_id: int) -> Row:
    """All columns of a job."""
    found = rows(conn, "select * from pgq.jobs where id = %s", job_id)
    assert len(found) == 1, f"job {job_id} has {len(found)} rows"
    return found[0]


def attempts(conn: Connection, job_id: int) -> list[Row]:
    """The recorded attempts of a job, oldest first."""
    return rows(conn, "select * from pgq.attempts where job_id = %s order by id", job_id)


def output(conn: Connection, job_id: int) -> list[str]:
    """What was logged in the only recorded attempt of a job: its lines, without their times."""
    (attempt,) = attempts(conn, job_id)
    lines = (attempt["output"] or "").split("\n")
    return [line if line.startswith(" ") else line.partition(" ")[2] for line in lines]


def counted(conn: Connection) -> dict[str, int]:
    """How many jobs `throughput` counts as done, failed and retried."""
    (totals,) = rows(
        conn,
        "select coalesce(sum(done), 0)::bigint as done, coalesce(sum(failed), 0)::bigint as failed,"
        " coalesce(sum(retried), 0)::bigint as retried from pgq.throughput",
    )
    return totals


def due_in(conn: Connection, job_id: int) -> timedelta:
    """How far in the future a job is due, by the clock of the transaction."""
    left: timedelta = value(conn, "select scheduled_at - now() from pgq.jobs where id = %s", job_id)
    return left


def now(conn: Connection) -> datetime:
    """When the transaction began, by the database's clock."""
    instant: datetime = value(conn, "select now()")
    return instant


def rows(conn: Connection, query: str, *params: Any) -> list[Row]:
    """The rows of a query, by column name."""
    return conn.cursor(row_factory=dict_row).execute(query.encode(), params).fetchall()


def value(conn: Connection, query: str, *params: Any) -> Any:
    """The first column of the only row of a query."""
    (found,) = conn.execute(query.encode(), params).fetchall()
    return found[0]
