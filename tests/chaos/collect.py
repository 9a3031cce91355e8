"""Reads what a run has left, in the database and in its folder, into a history."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.chaos import journal
from tests.chaos.fleet import LOG
from tests.chaos.history import (
    Attempt,
    Counters,
    Event,
    History,
    Job,
    Process,
    Rules,
    Worker,
    Written,
)

JOBS = """
    select id, kind, status, attempts, max_attempts, losses, last_error, lease, finished_at
    from pgq.jobs order by id
"""
ATTEMPTS = """
    select job_id as job, attempt as number, worker_id as worker, outcome, error, finished_at as at
    from pgq.attempts order by id
"""
WORKERS = "select id, pid, started_at, died_at, stopped_at from pgq.workers order by id"
COUNTERS = """
    select coalesce(sum(done), 0)::bigint as done, coalesce(sum(failed), 0)::bigint as failed,
        coalesce(sum(retried), 0)::bigint as retried
    from pgq.throughput
"""
WRITTEN = "select distinct job, attempt, process from chaos.written order by 1, 2, 3"
ORDERS = "select job from chaos.orders order by number"


def collect(
    dsn: str,
    folder: Path,
    *,
    rules: Rules,
    acknowledged: int,
    processes: Sequence[Process],
    events: Sequence[Event],
) -> History:
    """Everything, once nothing runs any more."""
    with psycopg.connect(dsn) as conn:
        orders = tuple(row["job"] for row in _rows(conn, ORDERS))
        return History(
            rules=rules,
            orders=orders,
            acknowledged=acknowledged,
            jobs=tuple(Job(**row) for row in _rows(conn, JOBS)),
            attempts=tuple(Attempt(**row) for row in _rows(conn, ATTEMPTS)),
            workers=tuple(Worker(**row) for row in _rows(conn, WORKERS)),
            counters=Counters(**_rows(conn, COUNTERS)[0]),
            written=tuple(Written(**row) for row in _rows(conn, WRITTEN)),
            executions=tuple(journal.read(folder)),
            processes=tuple(replace(found, ready=_ready(folder, found)) for found in processes),
            events=tuple(events),
        )


def _rows(conn: psycopg.Connection[Any], query: str) -> list[dict[str, Any]]:
    cursor = conn.cursor(row_factory=dict_row)
    return [_on_our_clock(row) for row in cursor.execute(query.encode()).fetchall()]


def _on_our_clock(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: monotonic(value) if isinstance(value, datetime) else value
        for name, value in row.items()
    }


def monotonic(instant: datetime) -> float:
    """An instant of this host's calendar, on the monotonic clock."""
    return instant.timestamp() - time.time() + time.monotonic()


def _ready(folder: Path, process: Process) -> float | None:
    """When a process logged that it had started."""
    for line in log_lines(folder / f"{process.name}{LOG}"):
        if line.get("event") == "worker started":
            return monotonic(datetime.fromisoformat(line["time"]))
    return None


def log_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a worker's log; what is no JSON is an event of its own."""
    lines = []
    for text in path.read_text(errors="replace").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            line = {"event": text, "level": "stray"}
        lines.append(line)
    return lines
