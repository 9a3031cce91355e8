"""`pgq demo`: a small workload in a database of its own, from the first line to the last."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgq_cli.options import new_app
from pgq_cli.render import Output

if TYPE_CHECKING:
    import psycopg

app = new_app()

ROUNDS = 50
"""After so many looks at jobs that are due shortly, something is wrong."""

NEXT = """
Next, with a database of yours (PGQ_DSN) or the private server:
  pgq install
  pgq enqueue send_email '{"to": "a@example.org"}'
  pgq worker --exec 'cat >> seen' --drain
  pgq jobs
"""


@app.command()
def demo(
    ctx: typer.Context,
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the database it works in.")] = False,
) -> None:
    """Enqueue fifty jobs, work them off, and show what became of them.

    It makes a database of its own on the server, and drops it at the end. Some jobs fail on
    purpose. Exit code 1 when the counts are not what they must be.

    \b
    Examples:
      pgq demo
      pgq demo --keep
    """
    from pgq import db
    from pgq.admin import scratch
    from pgq_cli import connection, console

    dsn = connection.resolve(ctx)
    with scratch.database(dsn, keep=keep) as made:
        console.talk(f"pgq demo: in the new database {db.describe(made.dsn)}")
        with db.connect(made.dsn, application_name="pgq demo") as conn:
            _enqueue(conn)
            _work(made.dsn, conn)
            right = _show(conn)
    if keep:
        console.emit(f"\nThe database is kept: export PGQ_DSN='{made.public_dsn}'\n")
    console.emit(NEXT)
    if not right:
        console.talk("pgq demo: these are not the counts that were expected")
        raise typer.Exit(1)


def _enqueue(conn: "psycopg.Connection[Any]") -> None:
    from pgq import NewJob, enqueue_many, migrate
    from pgq_cli import console
    from pgq_cli.workload import JOBS

    migrate.install(conn)
    jobs = [NewJob(kind, {"number": n}) for kind, count in JOBS.items() for n in range(count)]
    with conn.transaction():
        enqueue_many(conn, jobs)
    counts = ", ".join(f"{count} {kind}" for kind, count in JOBS.items())
    console.talk(f"pgq demo: enqueued {counts}; now as pgq worker --app pgq_cli.workload:app")


def _work(dsn: str, conn: "psycopg.Connection[Any]") -> None:
    """Drain until no job waits for its retry."""
    from time import sleep

    from pgq.admin.stats import count_queues
    from pgq.worker import Options, run
    from pgq_cli.workload import app as workload

    for _ in range(ROUNDS):
        run(Options(dsn=dsn, app=workload, drain=True))
        if not any(row.ready or row.scheduled for row in count_queues(conn)):
            return
        sleep(0.1)


def _show(conn: "psycopg.Connection[Any]") -> bool:
    """Print counts and dead letters; whether they are as they must be."""
    from pgq.admin.jobs import JobFilter, JobRow, list_jobs
    from pgq.admin.stats import QueueRow, count_queues
    from pgq.model import Status
    from pgq_cli import console
    from pgq_cli.commands import jobs, stats
    from pgq_cli.workload import JOBS

    queues = count_queues(conn)
    failed = list_jobs(conn, JobFilter(status=Status.FAILED), limit=10)
    console.emit("\npgq stats\n")
    console.emit_rows(QueueRow._fields, queues, Output.TABLE, shown=stats.SHOWN)
    console.emit("\npgq jobs --status failed\n")
    console.emit_rows(JobRow._fields, failed, Output.TABLE, shown=jobs.SHOWN)
    done = sum(row.done_1h for row in queues)
    return (done, len(failed)) == (sum(JOBS.values()) - JOBS["hopeless"], JOBS["hopeless"])
