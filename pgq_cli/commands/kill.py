"""`pgq kill`: jobs made to end by an operator."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from pgq_cli.options import DryRun, JobIds, OutputOption, duration, new_app
from pgq_cli.render import Output

if TYPE_CHECKING:
    from pgq.admin.kill import Killed

app = new_app()


@app.command()
def kill(
    ctx: typer.Context,
    ids: JobIds,
    *,
    wait: Annotated[
        str,
        typer.Option(
            "--wait",
            metavar="DURATION",
            help="Wait up to so long for running jobs to end; 0s: only ask.",
        ),
    ] = "20s",
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Take running jobs from their workers at once: their keys are free and they end "
            "cancelled, but a handler may go on, until its worker notices, within about a minute.",
        ),
    ] = False,
    dry_run: DryRun = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make jobs end: pending ones at once, running ones by all that their worker can do.

    The worker hears of it within 2 seconds, asks the handler, then insists: SIGTERM and SIGKILL to
    a process, a cancel to its own queries. A job that is done first stays done. You are not asked
    to confirm. Exit code 1 when a job did not end, or ended otherwise.

    \b
    Examples:
      pgq kill 42
      pgq kill 42 43 --wait 1m --output json
      pgq kill 42 --force
    """
    from pgq.admin.kill import Killed
    from pgq.admin.kill import kill as do
    from pgq_cli import connection, console

    patience = duration("--wait", wait) or timedelta(0)
    with connection.connect(ctx) as conn:
        rows = do(
            conn, ids, force=force, wait=patience, dry_run=dry_run, waiting=_say_waiting(wait)
        )
    console.emit_rows(Killed._fields, rows, output, dry_run=dry_run)
    _conclude(rows, dry_run=dry_run)


def _conclude(rows: "Sequence[Killed]", *, dry_run: bool) -> None:
    """Say what else there is to say; end with 1 where a job did not end, or ended otherwise."""
    from pgq_cli import console

    if dry_run:
        console.talk("pgq: a dry run: nothing was changed")
    elif any(row.outcome == "still running" for row in rows):
        console.talk(
            "pgq: what still runs cannot be stopped (a thread, an async handler that goes on), or "
            "its worker does not answer, or cannot tell of its end while its event loop is blocked "
            "(pgq workers): it may end yet; --force frees the job while its handler goes on"
        )
    if not all(row.ok for row in rows):
        raise typer.Exit(1)


def _say_waiting(wait: str) -> Callable[[int], None]:
    """Tells a person why nothing happens."""
    from pgq_cli import console

    def say(jobs: int) -> None:
        if console.is_attended():
            console.talk(
                f"pgq: {jobs} running jobs are to end: waiting up to {wait} "
                "(Ctrl-C ends the wait, not the kill)"
            )

    return say
