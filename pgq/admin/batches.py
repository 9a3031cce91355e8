"""Doing something to many jobs, in transactions of bounded size; with a rehearsal."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg

from pgq import db
from pgq.calls import Call

T = TypeVar("T")

SIZE = 1000
"""Jobs per transaction: their rows stay locked until its end."""


def run(
    conn: psycopg.Connection[Any],
    ids: Sequence[int],
    call: Callable[[Sequence[int]], Call[list[T]]],
    *,
    dry_run: bool,
) -> list[T]:
    """Run the call for all ids, some at a time; give all its rows.

    A dry run does the same and takes it back: the rows tell what would have been.
    """
    distinct = list(dict.fromkeys(ids))
    rows: list[T] = []
    for start in range(0, len(distinct), SIZE):
        with db.driver_errors(), conn.transaction(force_rollback=dry_run):
            rows.extend(db.run(conn, call(distinct[start : start + SIZE])))
    return rows
