"""What the database says of the demonstration's jobs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg


class Progress(NamedTuple):
    """How many jobs stand where."""

    done: int
    running: int
    waiting: int
    retrying: int
    snoozed: int
    failed: int

    @property
    def unfinished(self) -> int:
        return self.running + self.waiting + self.retrying + self.snoozed

    def __str__(self) -> str:
        return ", ".join(f"{count} {name}" for name, count in self._asdict().items() if count)


class Summary(NamedTuple):
    """What became of the jobs of a kind."""

    kind: str
    jobs: int
    done: int
    failed: int
    retries: int
    lost: int
    snoozes: int


class DeadLetter(NamedTuple):
    """A job that failed for good."""

    id: int
    kind: str
    subject: str
    error: str


class Ending(NamedTuple):
    """How a job that was lost went on."""

    id: int
    status: str
    losers: list[int]
    """The workers that died with it."""
    last_worker: int | None


class Ledger:
    """Reads the queue's tables; each read sees what is committed by then."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self._conn = conn

    def rows(self, query: str, *parameters: object) -> list[Any]:
        """The rows that a query gives now."""
        return self._conn.execute(query.encode(), parameters or None).fetchall()

    def progress(self) -> Progress:
        (row,) = self.rows(
            """
            select
                count(*) filter (where status = 'done'),
                count(*) filter (where status = 'running'),
                count(*) filter (where status = 'pending' and attempts = 0 and snoozes = 0),
                count(*) filter (where status = 'pending' and attempts > 0),
                count(*) filter (where status = 'pending' and attempts = 0 and snoozes > 0),
                count(*) filter (where status in ('failed', 'cancelled'))
            from pgq.jobs
            """
        )
        return Progress(*row)

    def summaries(self) -> list[Summary]:
        rows = self.rows(
            """
            select kind, count(*),
                count(*) filter (where status = 'done'),
                count(*) filter (where status = 'failed'),
                sum(attempts - 1),
                sum(losses),
                sum(snoozes)
            from pgq.jobs
            group by kind
            order by kind
            """
        )
        return [Summary(*row) for row in rows]

    def dead_letters(self) -> list[DeadLetter]:
        rows = self.rows(
            """
            select id, kind,
                coalesce(
                    payload->>'to', payload->>'recipient', payload->>'number',
                    concat_ws(' ', payload->>'photo', payload->>'size')
                ),
                last_error
            from pgq.jobs
            where status = 'failed'
            order by kind, id
            """
        )
        return [DeadLetter(*row) for row in rows]

    def worker_ids(self, pids: list[int]) -> dict[int, int]:
        """The workers that have reported for work, by process."""
        rows = self.rows("select pid, id from pgq.workers where pid = any(%s)", pids)
        return dict(rows)

    def held_by(self, worker_id: int) -> list[int]:
        """The jobs that a frozen worker runs; none while a result may still be on its way."""
        rows = self.rows(
            """
            select id from pgq.jobs
            where status = 'running' and worker_id = %s and not exists (
                select from pg_stat_activity
                where datname = current_database() and pid <> pg_backend_pid()
                    and application_name like 'pgq worker%%' and state = 'active'
            )
            order by id
            """,
            worker_id,
        )
        return [job_id for (job_id,) in rows]

    def endings(self, job_ids: Sequence[int]) -> list[Ending]:
        """What became of these jobs."""
        rows = self.rows(
            """
            select j.id, j.status,
                array(
                    select a.worker_id from pgq.attempts as a
                    where a.job_id = j.id and a.outcome = 'lost'
                    order by a.id
                ),
                j.worker_id
            from pgq.jobs as j
            where j.id = any(%s)
            order by j.id
            """,
            list(job_ids),
        )
        return [Ending(*row) for row in rows]

    def totals(self) -> dict[str, str]:
        """What the jobs of the invoices returned, by number."""
        return dict(
            self.rows(
                "select payload->>'number', result->>'total' from pgq.jobs"
                " where kind = 'make_invoice' and status = 'done'"
            )
        )

    def contacts(self) -> list[tuple[str, str, int]]:
        """The CRM: e-mail address, name, and number of orders."""
        return self.rows("select email, name, orders from shop.contacts")

    def count(self, condition: str, *parameters: object) -> int:
        """How many rows there are `from` what is given."""
        ((count,),) = self.rows(f"select count(*) from {condition}", *parameters)
        assert isinstance(count, int)
        return count
