"""`pgq worker`: runs jobs until it is told to stop."""

from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgq.errors import UsageError
from pgq_cli.options import Embedded, duration, new_app, whole_number

if TYPE_CHECKING:
    from pgq.worker import Options

app = new_app()


class LogFormat(StrEnum):
    """The form of the log."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """The least severe events that are logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


AppName = Annotated[
    str | None,
    typer.Option(
        "--app", envvar="PGQ_APP", metavar="MODULE:APP", help="The app whose handlers run the jobs."
    ),
]
Command = Annotated[
    str | None,
    typer.Option(
        "--exec",
        envvar="PGQ_EXEC",
        metavar="COMMAND",
        help="Run this shell command for each job instead: the payload is on its stdin, the rest "
        "in PGQ_* variables. It ends with 0: done, 75: again in a minute, else: failed.",
    ),
]
Queues = Annotated[
    list[str] | None,
    typer.Option(
        "--queue",
        "-q",
        envvar="PGQ_QUEUES",
        metavar="QUEUE",
        help="Serve this queue; may be repeated (in the variable, separated by blanks). Else "
        "those that the handlers name, and default.",
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        envvar="PGQ_KINDS",
        metavar="KIND",
        help="Serve only this kind; may be repeated.",
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency",
        "-c",
        envvar="PGQ_CONCURRENCY",
        parser=whole_number,
        metavar="N",
        help="Jobs at once of each way to run (async, threads, processes). Else 100 for async "
        "handlers, and twice the cores for others.",
    ),
]
Drain = Annotated[bool, typer.Option("--drain", help="End when nothing is due.")]
Grace = Annotated[
    str | None,
    typer.Option(
        "--grace",
        envvar="PGQ_GRACE",
        metavar="DURATION",
        help="After the first signal, hand running jobs back when this is over. Else never.",
    ),
]
Poll = Annotated[
    str,
    typer.Option(
        "--poll",
        envvar="PGQ_POLL",
        metavar="DURATION",
        help="When idle, look for jobs at least this often; most are told of at once.",
    ),
]
RecycleJobs = Annotated[
    int,
    typer.Option(
        "--recycle-jobs",
        envvar="PGQ_RECYCLE_JOBS",
        parser=whole_number,
        metavar="N",
        help="Replace a process that runs handlers after so many jobs.",
    ),
]
RecycleMb = Annotated[
    int,
    typer.Option(
        "--recycle-mb",
        envvar="PGQ_RECYCLE_MB",
        parser=whole_number,
        metavar="MB",
        help="Replace it also when it has grown by so much memory.",
    ),
]
Format = Annotated[
    LogFormat, typer.Option(envvar="PGQ_LOG_FORMAT", help="Form of the log, on stderr.")
]
Level = Annotated[
    LogLevel, typer.Option(envvar="PGQ_LOG_LEVEL", help="The least severe events that are logged.")
]


@app.command()
def worker(
    ctx: typer.Context,
    *,
    app_name: AppName = None,
    command: Command = None,
    queue: Queues = None,
    kind: Kinds = None,
    concurrency: Concurrency = None,
    drain: Drain = False,
    grace: Grace = None,
    poll: Poll = "2s",
    recycle_jobs: RecycleJobs = 1000,
    recycle_mb: RecycleMb = 512,
    log_format: Format = LogFormat.TEXT,
    log_level: Level = LogLevel.INFO,
    embedded: Embedded = False,
) -> None:
    """Run jobs, with the handlers of an app or a shell command for each.

    The first signal drains: nothing more is claimed, what runs may finish. The second hands
    running jobs back, the third ends at once. The current directory is on sys.path.

    Exit code 0: told to end once, or drained. 1: it could not go on, the log says why. 2: wrong
    options or app. 3: no database or schema at the start. 128 + the signal: told to end twice.

    \b
    Examples:
      pgq worker --app shop:app -q mail -q images -c 20
      pgq worker --exec './resize.sh' -q images
    """
    from pgq.worker import Options

    options = Options(
        dsn="",
        **_work(app_name, command),
        queues=queue or (),
        kinds=kind or (),
        concurrency=concurrency,
        drain=drain,
        grace=duration("--grace", grace),
        poll=duration("--poll", poll) or timedelta(0),
        recycle_jobs=recycle_jobs,
        recycle_mb=recycle_mb,
        log_format=log_format.value,
        log_level=log_level.value,
    )
    raise typer.Exit(_run(ctx, options, private=embedded))


def _work(app_name: str | None, command: str | None) -> dict[str, Any]:
    """What runs the jobs, as an option of the worker."""
    from pgq_cli import applications

    if (app_name is None) == (command is None):
        raise UsageError(
            "give either an app, --app MODULE:APP (or PGQ_APP), or a command, --exec COMMAND"
        )
    if app_name is None:
        return {"command": command}
    return {"app": applications.load(app_name)}


def _run(ctx: typer.Context, options: "Options", *, private: bool) -> int:
    from dataclasses import replace

    from pgq.worker import run
    from pgq.worker.leaving import bound_exit
    from pgq_cli import connection, console

    console.write_by_lines()  # what handlers print
    code = run(replace(options, dsn=connection.resolve(ctx, service=True, private=private)))
    bound_exit(code)
    return code
