"""`pgq requeue`: jobs sent back by an operator."""

from typing import Annotated

import typer

from pgq.errors import UsageError
from pgq_cli.options import DryRun, OutputOption, new_app, whole_number
from pgq_cli.render import Output

app = new_app()

SHOWN = ("id", "outcome", "reason")

LEFT = 100
"""So many jobs that are left to their live workers are listed."""

Ids = Annotated[
    list[int] | None,
    typer.Argument(parser=whole_number, metavar="ID...", help="The jobs' ids.", show_default=False),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Also jobs that a live worker runs: its handler goes on beside the new attempt, "
        "and what it ends with changes nothing.",
    ),
]
Stuck = Annotated[
    bool,
    typer.Option(
        "--stuck",
        help="The running jobs of dead workers, like pgq reap, with the proof for each; and the "
        "running jobs that are left alone, with the reason.",
    ),
]

Embedded = Annotated[
    bool,
    typer.Option("--embedded", help="With --stuck: work on the private server (pgq server)."),
]


@app.command()
def requeue(
    ctx: typer.Context,
    ids: Ids = None,
    *,
    force: Force = False,
    stuck: Stuck = False,
    dry_run: DryRun = False,
    embedded: Embedded = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Send failed, cancelled and done jobs back to pending: due now, attempts from 0 again.

    A done job runs again, and does its work twice. You are not asked to confirm. Exit code 1 when
    a job could not be requeued.

    With --stuck instead of ids, jobs whose worker is proven dead go back, attempts counted. How
    long a job has run proves nothing: one that a live worker runs is left alone.

    \b
    Examples:
      pgq requeue 42 43
      pgq jobs --status failed -o jsonl | jq .id | xargs pgq requeue --dry-run
      pgq requeue --stuck --dry-run
    """
    if stuck and ids:
        raise UsageError("give the ids of jobs or --stuck, not both")
    if not stuck and not ids:
        raise UsageError("Missing argument 'ID...': name jobs, or give --stuck")
    if stuck:
        if force:
            raise UsageError("--force needs the ids of jobs: --stuck takes none from a live worker")
        _unstick(ctx, dry_run=dry_run, embedded=embedded, output=output)
    elif embedded:
        raise UsageError("--embedded goes with --stuck only: leave it out")
    else:
        _requeue(ctx, ids or [], force=force, dry_run=dry_run, output=output)


def _requeue(
    ctx: typer.Context, ids: list[int], *, force: bool, dry_run: bool, output: Output
) -> None:
    from pgq.admin.requeue import Requeued
    from pgq.admin.requeue import requeue as do
    from pgq_cli import connection, console

    with connection.connect(ctx) as conn:
        rows = do(conn, ids, force=force, dry_run=dry_run)
    console.emit_rows(Requeued._fields, rows, output, dry_run=dry_run)
    if dry_run:
        console.talk("pgq: a dry run: nothing was changed")
    if not all(row.ok for row in rows):
        raise typer.Exit(1)


def _unstick(ctx: typer.Context, *, dry_run: bool, embedded: bool, output: Output) -> None:
    from pgq.admin.proof import lives
    from pgq.admin.reap import reap
    from pgq.admin.stuck import Unstuck, explain
    from pgq_cli import connection, console
    from pgq_cli.commands.reap import conclude, say_waiting

    with connection.connect(ctx, service=True, private=embedded) as conn:
        reaping = reap(conn, dry_run=dry_run, waiting=say_waiting)
        left = lives(conn, limit=LEFT + 1)
    rows = explain(reaping, left[:LEFT])
    console.emit_rows(Unstuck._fields, rows, output, shown=SHOWN, dry_run=dry_run)
    if len(left) > LEFT:
        console.talk(f"pgq: of the jobs that live workers run, the {LEFT} oldest")
    conclude(reaping, dry_run=dry_run)
