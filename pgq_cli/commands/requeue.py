"""`pgq requeue`: jobs sent back by an operator."""

from typing import Annotated

import typer

from pgq_cli.options import DryRun, JobIds, OutputOption, new_app
from pgq_cli.render import Output

app = new_app()


@app.command()
def requeue(
    ctx: typer.Context,
    ids: JobIds,
    *,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also jobs that a live worker runs: its handler goes on beside the new attempt, "
            "and what it ends with changes nothing.",
        ),
    ] = False,
    dry_run: DryRun = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Send failed, cancelled and done jobs back to pending: due now, attempts from 0 again.

    Nothing is asked: each job is named. Exit code 1 when a job could not be requeued.

    \b
    Examples:
      pgq requeue 42 43
      pgq jobs --status failed --output jsonl | jq .id | xargs pgq requeue --dry-run
    """
    from pgq.admin.requeue import Requeued
    from pgq.admin.requeue import requeue as do
    from pgq_cli import connection, console

    with connection.connect(ctx) as conn:
        rows = do(conn, ids, force=force, dry_run=dry_run)
    console.emit_rows(Requeued._fields, rows, output)
    if dry_run:
        console.talk("pgq: a dry run: nothing was changed")
    if not all(row.ok for row in rows):
        raise typer.Exit(1)
