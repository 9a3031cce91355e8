"""The command `pgq`: from the arguments to the exit code.

A command is a module in pgq_cli/commands that is imported when it is called; the help of `pgq`
needs none of them.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from pgq.errors import UsageError
from pgq_cli import console, failure

COMMANDS = {
    "install": "Create or update the schema in the database.",
    "version": "Show the versions of program, schema and server.",
    "enqueue": "Enqueue a job, or a file of jobs.",
    "worker": "Run jobs.",
    "jobs": "List the newest jobs.",
    "show": "Show all about one job.",
    "wait": "Wait for a job to end, and print its result.",
    "stats": "Count what waits, runs and failed, by queue.",
    "requeue": "Send jobs back to pending.",
    "cancel": "Cancel pending jobs, and ask running ones to end.",
    "kill": "Make jobs end, also running ones.",
    "workers": "List the workers, or check that they are well.",
    "reap": "Give the jobs of dead workers back.",
    "server": "Start, stop and see the private PostgreSQL server.",
    "demo": "Run a small workload, to see how it looks.",
}
"""What there is, in the order of the help."""


class Commands(TyperGroup):
    """The commands, each loaded from its module when it is wanted."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        names: dict[str, Any] = dict.fromkeys(COMMANDS)
        self.commands = names  # where Typer looks for what a misspelt name may have meant

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        command = get_command(import_module(f"pgq_cli.commands.{cmd_name}").app)
        command.name = cmd_name
        return command

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


root = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - Typer calls it with the option's value
    if wanted:
        from pgq_cli.commands.version import program_version

        console.emit(f"pgq {program_version()}\n")
        raise typer.Exit


@root.callback()
def _options(
    ctx: typer.Context,
    *,
    dsn: Annotated[
        str | None,
        typer.Option(
            "--dsn",
            metavar="DSN",
            help="The database. Else PGQ_DSN, DATABASE_URL, or PGSERVICE, PGHOST ...; else the "
            "private server (pgq server --help), where it is installed.",
        ),
    ] = None,
    version: Annotated[  # noqa: ARG001 - its callback does it all
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """A background-job queue in PostgreSQL.

    \b
    Examples:
      pgq install
      pgq enqueue send_email '{"to": "a@example.org"}'
      pgq worker --app shop:app --drain
      pgq jobs --status failed
    """
    ctx.obj = dsn


def main() -> int:
    """Run the command line of this process; gives its exit code."""
    console.escape_unwritable()
    try:
        code = _run(sys.argv[1:])
        console.flush()
    except BrokenPipeError:
        console.silence_stdout()
        return failure.BROKEN_PIPE
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last one to be told
        return _fail(error)
    finally:
        console.abandon_unwritten()
    return code


def _run(arguments: list[str]) -> int:
    program = Path(sys.argv[0]).name
    name = program if program in ("pgq", "pgqctl") else "pgq"
    command = get_command(root)
    if f"_{name.upper()}_COMPLETE" in os.environ:
        command.main(arguments, prog_name=name)
    try:
        with command.make_context(name, [_text(argument) for argument in arguments]) as ctx:
            command.invoke(ctx)
    except typer.Exit as end:
        return end.exit_code
    return 0


def _fail(error: BaseException) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        for line in str(error).split("\n"):
            console.talk(line)
        return failure.USAGE
    explained = failure.explain(error, debug=os.environ.get("PGQ_DEBUG") == "1")
    for line in explained.text.split("\n"):
        console.talk(line)
    return explained.exit_code


def _text(argument: str) -> str:
    """An argument that the locale could not decode, as the UTF-8 that it is."""
    if argument.isascii() or not any("\ud800" <= character <= "\udfff" for character in argument):
        return argument
    try:
        return os.fsencode(argument).decode()
    except UnicodeDecodeError:
        raise UsageError(f"the argument {argument!r} is not UTF-8 text: give it as UTF-8") from None
