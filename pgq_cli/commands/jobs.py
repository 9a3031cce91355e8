"""`pgq jobs`: the newest jobs that match."""

from typing import Annotated

import typer

from pgq.model import Status
from pgq_cli.options import OutputOption, new_app, since
from pgq_cli.render import Output

app = new_app()

SHOWN = ("id", "queue", "kind", "status", "attempts", "created_at", "last_error")


@app.command()
def jobs(
    ctx: typer.Context,
    *,
    queue: Annotated[
        str | None, typer.Option("--queue", "-q", metavar="QUEUE", help="Of this queue.")
    ] = None,
    status: Annotated[Status | None, typer.Option(help="In this status.")] = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Of this kind.")] = None,
    error: Annotated[
        str | None, typer.Option(metavar="TEXT", help="With this text in the last error.")
    ] = None,
    since_text: Annotated[
        str | None,
        typer.Option("--since", metavar="2h|TIME", help="Enqueued this long ago, or since then."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="N", help="At most so many.")
    ] = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the newest jobs, the newest first.

    A table shows some of the columns, and what fits the terminal; the other forms have all.

    \b
    Examples:
      pgq jobs --status failed --since 2h
      pgq jobs --queue mail --error timeout --output json
    """
    from pgq.admin.jobs import JobFilter, JobRow, list_jobs
    from pgq_cli import connection, console

    which = JobFilter(
        queue=queue, status=status, kind=kind, error=error, since=since("--since", since_text)
    )
    with connection.connect(ctx) as conn:
        found = list_jobs(conn, which, limit=limit)
    console.emit_rows(JobRow._fields, found, output, shown=SHOWN, empty="pgq: no job matches")
    if output is Output.TABLE and len(found) == limit:
        console.talk(f"pgq: the newest {limit}; --limit shows more")
