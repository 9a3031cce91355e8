"""`pgq server`: the private PostgreSQL of this user, started, stopped and looked at by hand."""

import typer

from pgq_cli import console
from pgq_cli.options import OutputOption
from pgq_cli.render import Output

NOT_RUNNING = 3
PATHS = ("data_dir", "socket_dir", "log_file")
SHOWN = ("running", "pid", "version", "started_at", "account", "data_dir")

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="The private PostgreSQL server of this user.\n\nIts files are in "
    "~/.local/share/pgq-toolkit, root's in /var/lib/pgq-toolkit, or where PGQ_SERVER_HOME says.",
)


@app.command()
def start() -> None:
    """Start the server where it is not running. Commands that need it do so by themselves.

    \b
    Examples:
      pgq server start
    """
    from pgq import embedded

    before, now = embedded.status(), embedded.start()
    done = "was running already" if before.pid == now.pid else "started"
    console.talk(
        f"pgq: PostgreSQL {now.version} {done} (process {now.pid}, data in {now.data_dir})"
    )


@app.command()
def stop() -> None:
    """Stop the server. Its clients are disconnected, its data stays.

    \b
    Examples:
      pgq server stop
    """
    from pgq import embedded

    console.talk("pgq: the server was stopped" if embedded.stop() else "pgq: no server was running")


@app.command()
def status(*, output: OutputOption = Output.TABLE) -> None:
    """Show whether it runs, and where. The exit code is 0 when it runs and 3 when it does not.

    \b
    Examples:
      pgq server status
      pgq server status --output json
    """
    from dataclasses import asdict

    from pgq import embedded

    now = asdict(embedded.status())
    row = tuple(str(value) if name in PATHS else value for name, value in now.items())
    console.emit_rows(list(now), [row], output, shown=SHOWN)
    if not now["running"]:
        raise typer.Exit(NOT_RUNNING)


@app.command()
def url() -> None:
    """Print its address, for psql. It is started where it is not running.

    \b
    Examples:
      psql "$(pgq server url)"
    """
    from pgq import embedded

    console.emit(embedded.ensure() + "\n")
