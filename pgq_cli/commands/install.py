"""`pgq install`: the schema, in place and up to date."""

from typing import Annotated

import typer

from pgq_cli.options import new_app

app = new_app()


@app.command()
def install(
    ctx: typer.Context,
    *,
    print_sql: Annotated[
        bool, typer.Option("--print", help="Print the SQL of a fresh install, and do nothing.")
    ] = False,
) -> None:
    """Create the schema `pgq` in the database, or bring it up to date.

    Safe to repeat, and to run from several places at once. A schema of that name that another
    program made is refused, and left as it is (exit code 5).

    \b
    Examples:
      pgq --dsn postgresql://app@db.example.org/shop install
      pgq install --print > pgq.sql
    """
    from pgq import migrate
    from pgq_cli import connection, console

    if print_sql:
        console.emit(migrate.script(), machine=True)
        return
    with connection.open_without_check(ctx) as conn:
        done = migrate.install(conn)
    if done.migrations or done.functions:
        console.talk(
            f"pgq: schema pgq is at version {done.version}: applied {done.migrations} migrations "
            f"and {done.functions} functions"
        )
    else:
        console.talk(f"pgq: schema pgq is at version {done.version}: nothing to do")
