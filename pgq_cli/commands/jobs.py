"""`pgq jobs`: the newest jobs that match."""

from typing import Annotated

import typer

from pgq.model import Status
from pgq_cli.options import OutputOption, new_app, since, whole_number
from pgq_cli.render import Output

app = new_app()

SHOWN = ("id", "queue", "kind", "status", "attempts", "created_at", "last_error")

MOST = 1_000_000
"""Jobs that are listed at once."""

Queue = Annotated[str | None, typer.Option("--queue", "-q", metavar="QUEUE", help="Of this queue.")]
InStatus = Annotated[Status | None, typer.Option("--status", help="In this status.")]
Kind = Annotated[str | None, typer.Option("--kind", metavar="KIND", help="Of this kind.")]
Error = Annotated[
    str | None, typer.Option("--error", metavar="TEXT", help="With this text in the last error.")
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="2h|TIME", help="Enqueued this long ago, or since then."),
]


def _limit(value: str | int) -> int:
    limit = whole_number(value)
    if not 1 <= limit <= MOST:
        raise typer.BadParameter(f"give a number from 1 to {MOST}")
    return limit


Limit = Annotated[
    int, typer.Option("--limit", parser=_limit, metavar="N", help=f"At most so many, up to {MOST}.")
]


@app.command()
def jobs(
    ctx: typer.Context,
    *,
    queue: Queue = None,
    status: InStatus = None,
    kind: Kind = None,
    error: Error = None,
    since_text: Since = None,
    limit: Limit = 50,
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
