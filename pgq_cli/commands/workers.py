"""`pgq workers`: who lives and what each runs; and a health check."""

from typing import TYPE_CHECKING, Annotated

import typer

from pgq.errors import UsageError
from pgq_cli.options import OutputOption, new_app
from pgq_cli.render import Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgq.admin.workers import WorkerRow

app = new_app()

SHOWN = ("id", "state", "queues", "running", "concurrency", "beat_age", "host", "pid")
PROBLEMS = 4

Queue = Annotated[
    str | None, typer.Option("--queue", "-q", metavar="QUEUE", help="Only of this queue.")
]
Here = Annotated[bool, typer.Option("--here", help="Only of this host, or container.")]
All = Annotated[bool, typer.Option("--all", help="Also those that ended in the last day.")]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="List nothing; exit with 0 when at least one lives and none is silent or in trouble, "
        "else with 4 and a line for each problem.",
    ),
]


@app.command()
def workers(
    ctx: typer.Context,
    *,
    queue: Queue = None,
    here: Here = False,
    ended: All = False,
    check: Check = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the workers that live, and those that died in the last hour.

    A live worker beats every 2 seconds; without a beat for 4 it is silent. One in trouble beats,
    but cannot do all of its work. A table has some of the columns, the other outputs have all.

    \b
    Examples:
      pgq workers
      pgq workers --queue mail --all --output json
      pgq workers --check --here
    """
    import socket

    from pgq.admin.workers import WorkerRow, list_workers, problems
    from pgq_cli import connection, console

    if check and (ended or output is not Output.TABLE):
        raise UsageError("--check lists nothing: leave --all and --output out")
    host = socket.gethostname() if here else None
    # A health check must not find nobody on an empty private server: it is a service.
    with connection.connect(ctx, service=check) as conn:
        found = list_workers(conn, queue=queue, host=host, ended=ended)
    wrong = problems(found)
    if check and not any(worker.lives for worker in found):
        wrong.append(_nobody(queue, host))
    if not check:
        columns, empty = WorkerRow._fields, "pgq: no worker is known"
        rows = _for_people(found) if output is Output.TABLE else found
        console.emit_rows(columns, rows, output, shown=SHOWN, empty=empty)
    if output is Output.TABLE:
        for line in wrong:
            console.talk(f"pgq: {line}")
    if check and wrong:
        raise typer.Exit(PROBLEMS)


def _for_people(found: "Sequence[WorkerRow]") -> "list[tuple[object, ...]]":
    return [(*row[:2], ",".join(row.queues), *row[3:]) for row in found]


def _nobody(queue: str | None, host: str | None) -> str:
    serving = f" of the queue {queue}" if queue else ""
    place = f" on {host}" if host else ""
    return f"no worker{serving} lives{place}"
