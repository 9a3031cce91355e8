"""`pgq show`: one job's whole story."""

import typer

from pgq_cli.options import JobId, OutputOption, new_app
from pgq_cli.render import Output

app = new_app()


@app.command()
def show(ctx: typer.Context, job_id: JobId, *, output: OutputOption = Output.TABLE) -> None:
    """Show all about one job: its fields, payload, result, and the attempts that did not succeed.

    Each of these comes with its error and the end of what it wrote or logged; a running job with
    its progress. For people, huge values are cut; `--output json` has everything, with the
    attempts under `history`. CSV is one row, without them.

    \b
    Examples:
      pgq show 42
      pgq show 42 --output json | jq .payload
    """
    from pgq.admin.show import show_job
    from pgq_cli import connection, console, story

    with connection.connect(ctx) as conn:
        job, history = show_job(conn, job_id)
    match output:
        case Output.TABLE:
            console.emit(story.for_people(job, history))
        case Output.JSON:
            console.emit(story.as_json(job, history, indent=2), machine=True)
        case Output.JSONL:
            console.emit(story.as_json(job, history, indent=None), machine=True)
        case Output.CSV:
            console.emit_rows(job._fields, [job], output)
