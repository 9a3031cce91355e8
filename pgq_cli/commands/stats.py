"""`pgq stats`: counts, a row a queue."""

import typer

from pgq_cli.options import OutputOption, new_app
from pgq_cli.render import Output

app = new_app()

SHOWN = (
    "queue", "ready", "scheduled", "running", "failed", "done_1h", "oldest_ready_age",
)  # fmt: skip


@app.command()
def stats(ctx: typer.Context, *, output: OutputOption = Output.TABLE) -> None:
    """Count what is ready, scheduled, running and failed, and the last hour's work, by queue.

    A table shows some of the columns; the other forms have all.

    \b
    Examples:
      pgq stats
      pgq stats --output csv >> queues.csv
    """
    from pgq.admin.stats import QueueRow, count_queues
    from pgq_cli import connection, console

    with connection.connect(ctx) as conn:
        queues = count_queues(conn)
    console.emit_rows(
        QueueRow._fields, queues, output, shown=SHOWN, empty="pgq: no queue has jobs yet"
    )
