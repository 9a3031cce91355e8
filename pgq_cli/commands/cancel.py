"""`pgq cancel`: jobs asked to end by an operator."""

import typer

from pgq_cli.options import DryRun, JobIds, OutputOption, new_app
from pgq_cli.render import Output

app = new_app()


@app.command()
def cancel(
    ctx: typer.Context,
    ids: JobIds,
    *,
    dry_run: DryRun = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Cancel pending jobs at once, and ask running ones to end.

    A worker hears of the request at its next heartbeat; a job that finishes first stays done.
    You are not asked to confirm. Exit code 1 when a job could not be cancelled.

    \b
    Examples:
      pgq cancel 42 43
      pgq cancel 42 --output json
    """
    from pgq.admin.cancel import Cancellation
    from pgq.admin.cancel import cancel as do
    from pgq_cli import connection, console

    with connection.connect(ctx) as conn:
        rows = do(conn, ids, dry_run=dry_run)
    console.emit_rows(Cancellation._fields, rows, output, dry_run=dry_run)
    if dry_run:
        console.talk("pgq: a dry run: nothing was changed")
    if not all(row.ok for row in rows):
        raise typer.Exit(1)
