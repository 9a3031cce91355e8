"""`pgq server`: the private PostgreSQL of this user, started, stopped and looked at by hand."""

from typing import Annotated

import typer

from pgq_cli.console import emit, talk, width
from pgq_cli.render import Output, listing

NOT_RUNNING = 3
PATHS = ("data_dir", "socket_dir", "log_file")
SHOWN = ("running", "pid", "version", "started_at", "account", "data_dir")

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="The private PostgreSQL server of this user.",
)


@app.command()
def start() -> None:
    """Start the server where it is not running. Commands that need it do so by themselves.

    Example: pgq server start
    """
    from pgq import embedded

    before, now = embedded.status(), embedded.start()
    done = "was running already" if before.pid == now.pid else "started"
    talk(f"PostgreSQL {now.version} {done} (process {now.pid}, data in {now.data_dir})")


@app.command()
def stop() -> None:
    """Stop the server. Its clients are disconnected, its data stays.

    Example: pgq server stop
    """
    from pgq import embedded

    talk("the server was stopped" if embedded.stop() else "no server was running")


@app.command()
def status(
    output: Annotated[Output, typer.Option("--output", help="Form of the output.")] = Output.TABLE,
) -> None:
    """Show the server. The exit code is 0 when it runs and 3 when it does not.

    Example: pgq server status --output json
    """
    from dataclasses import asdict

    from pgq import embedded

    now = asdict(embedded.status())
    row = tuple(str(now[name]) if name in PATHS else now[name] for name in now)
    emit(listing(list(now), [row], output, shown=SHOWN, width=width()))
    if not now["running"]:
        raise typer.Exit(NOT_RUNNING)


@app.command()
def url() -> None:
    """Print the address of the server, which is started where it is not running.

    Example: psql "$(pgq server url)"
    """
    from pgq import embedded

    emit(embedded.ensure() + "\n")
