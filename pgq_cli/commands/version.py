"""`pgq version`: what works with what."""

import typer

from pgq_cli.options import OutputOption, new_app
from pgq_cli.render import Output

app = new_app()

COLUMNS = ("program", "needs_schema", "schema", "server")


@app.command()
def version(ctx: typer.Context, *, output: OutputOption = Output.TABLE) -> None:
    """Show the versions of the program, of the schema in the database, and of the server.

    Without a database, or with one that cannot be reached, the last two are empty.

    \b
    Examples:
      pgq version
      pgq version --output json
    """
    from pgq import _sql
    from pgq_cli import console

    found, server = _database(ctx)
    row = (program_version(), _sql.migrations()[-1].number, found, server)
    console.emit_rows(COLUMNS, [row], output)


def program_version() -> str:
    """The version that is installed; `unknown` for code that runs without being installed."""
    from importlib import metadata

    try:
        return metadata.version("pgq-toolkit")
    except metadata.PackageNotFoundError:
        return "unknown"


def _database(ctx: typer.Context) -> tuple[int | None, str | None]:
    """The versions of schema and server, where there are any."""
    from pgq import db
    from pgq.calls.queues import schema_version
    from pgq.errors import SchemaMismatch, Unavailable
    from pgq_cli import connection, console

    dsn = connection.named(ctx)
    if dsn is None:
        console.talk("pgq: no database is named")
        return None, None
    try:
        with db.connect(dsn, application_name="pgq version") as conn:
            server = conn.info.parameter_status("server_version")
            try:
                return db.run(conn, schema_version()), server
            except SchemaMismatch:
                return None, server
    except Unavailable as error:
        console.talk(f"pgq: {error}")
        return None, None
