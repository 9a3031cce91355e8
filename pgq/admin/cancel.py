"""Cancel: an operator asks jobs to end."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg

from pgq.admin import batches
from pgq.admin.actor import actor
from pgq.calls import Call, Rows


class Cancellation(NamedTuple):
    """What became of one job; the fields are the columns of cancel_jobs.sql."""

    id: int
    outcome: str

    @property
    def ok(self) -> bool:
        """The job is cancelled, or its worker will hear of it."""
        return self.outcome in ("cancelled", "requested", "already cancelled")


def cancel(
    conn: psycopg.Connection[Any], ids: Sequence[int], *, dry_run: bool = False
) -> list[Cancellation]:
    """Cancel pending jobs at once and ask running ones to end; a row an id."""

    def call(some: Sequence[int]) -> Call[list[Cancellation]]:
        return Call("cancel_jobs", {"ids": list(some), "actor": actor()}, _read)

    return batches.run(conn, ids, call, dry_run=dry_run)


def _read(rows: Rows) -> list[Cancellation]:
    return [Cancellation._make(row) for row in rows]
