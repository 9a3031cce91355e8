"""`pgq reap`: the jobs of dead workers given back."""

from typing import TYPE_CHECKING

import typer

from pgq_cli.options import DryRun, Embedded, OutputOption, new_app
from pgq_cli.render import Output

if TYPE_CHECKING:
    from pgq.admin.reap import Reaping

app = new_app()

NAMED = 20
"""So many jobs that could not be given back are named; the others are counted."""


@app.command()
def reap(
    ctx: typer.Context,
    *,
    dry_run: DryRun = False,
    embedded: Embedded = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Give the jobs of dead workers back.

    Needed only when no worker is alive: live workers do it for one another.

    A worker that seems dead is watched for 5 seconds first. Jobs of live workers are never
    touched, and repeating it is harmless. Exit code 1 when a job could not be given back, or a
    worker not be judged.

    \b
    Examples:
      pgq reap
      pgq reap --dry-run --output json
    """
    from pgq.admin.reap import Given, describe
    from pgq.admin.reap import reap as do
    from pgq_cli import connection, console

    with connection.connect(ctx, service=True, private=embedded) as conn:
        reaping = do(conn, dry_run=dry_run, waiting=say_waiting)
    rows = reaping.by_worker()
    if output is Output.TABLE:
        console.emit_lines(describe(row, dry_run=dry_run) for row in rows)
    else:
        console.emit_rows(Given._fields, rows, output)
    conclude(reaping, dry_run=dry_run)


def say_waiting() -> None:
    """Tell a person why nothing happens."""
    from pgq_cli import console

    if console.is_attended():
        console.talk("pgq: a worker seems dead: watching it for 5 seconds")


def conclude(reaping: "Reaping", *, dry_run: bool) -> None:
    """Say what else there is to say of a reap; end with 1 where something is left."""
    from pgq_cli import console

    refused = reaping.refused
    for job in refused[:NAMED]:
        became = "would not be" if dry_run else "was not"
        console.talk(f"pgq: job {job.job_id} {became} given back: {job.error}")
    if len(refused) > NAMED:
        console.talk(f"pgq: and {len(refused) - NAMED} more")
    if reaping.unjudged:
        console.talk(
            f"pgq: silent workers that were left alone: {reaping.unjudged} (a claim is under way, "
            "or the database stood still): try again"
        )
    if not reaping.jobs:
        console.talk("pgq: no job of a dead worker was found")
    if dry_run:
        more = f", and only the first {len(reaping.jobs)} jobs were tried" if reaping.cut else ""
        console.talk(f"pgq: a dry run: nothing was changed{more}")
    if refused or reaping.unjudged:
        raise typer.Exit(1)
