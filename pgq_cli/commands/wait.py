"""`pgq wait`: until a job has ended."""

from typing import Annotated

import typer

from pgq_cli.options import JobId, duration, new_app

app = new_app()


@app.command()
def wait(
    ctx: typer.Context,
    job_id: JobId,
    *,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="DURATION", help="Give up after this long.")
    ] = None,
) -> None:
    """Wait for a job to end, and print its result as JSON.

    Exit code 0: done. 1: failed, or its result could not be kept. 6: cancelled. 7: the timeout
    came first.

    \b
    Examples:
      pgq wait 42 --timeout 5m
      pgq wait "$(pgq enqueue report '{"month": 3}')" | jq .url
    """
    from pgq import client
    from pgq_cli import connection, console, render

    longest = duration("--timeout", timeout)
    with connection.connect(ctx) as conn:
        result = client.wait(conn, job_id, timeout=longest)
    console.emit(render.dump(result) + "\n", machine=True)
