"""`pgq enqueue`: one job from the arguments, or many from a file."""

import os
import stat
import sys
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from pgq.errors import UsageError
from pgq_cli.options import duration, instant, new_app, whole_number

app = new_app()


Kind = Annotated[
    str | None,
    typer.Argument(
        metavar="[KIND]", help="The job's kind; without it, the payload's `type` is the kind."
    ),
]
Payload = Annotated[
    str | None, typer.Argument(metavar="[JSON]", help="A JSON object; - reads it from stdin.")
]
File = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="PATH", help="A file, a job a line; - reads stdin."),
]
Queue = Annotated[
    str | None,
    typer.Option(
        "--queue", "-q", metavar="QUEUE", help="Else as the kind's worker says, or default."
    ),
]
Priority = Annotated[
    int,
    typer.Option(
        "--priority",
        "-p",
        parser=whole_number,
        metavar="N",
        help="Higher comes first; below 0 too.",
    ),
]
Delay = Annotated[
    str | None,
    typer.Option("--delay", metavar="DURATION", help="Due after this long: 90s, 5m, 2h, 1d."),
]
At = Annotated[
    str | None, typer.Option("--at", metavar="TIME", help="Due at this time: 2030-01-31T08:00:00Z.")
]
MaxAttempts = Annotated[
    int | None,
    typer.Option(
        "--max-attempts",
        parser=whole_number,
        metavar="N",
        help="Failed for good after so many attempts. Else as the kind's worker says, or 3.",
    ),
]
Timeout = Annotated[
    str | None, typer.Option("--timeout", metavar="DURATION", help="How long an attempt may take.")
]
Unique = Annotated[
    str | None,
    typer.Option(
        "--unique",
        metavar="KEY",
        help="At most one unfinished job has this key; if there is one, its id is printed and "
        "nothing is enqueued.",
    ),
]


@app.command()
def enqueue(
    ctx: typer.Context,
    kind: Kind = None,
    payload: Payload = None,
    *,
    file: File = None,
    queue: Queue = None,
    priority: Priority = 0,
    delay: Delay = None,
    at: At = None,
    max_attempts: MaxAttempts = None,
    timeout: Timeout = None,
    unique: Unique = None,
) -> None:
    """Enqueue a job and print its id, or all jobs of a file in one transaction.

    A line of a file is {"kind": ..., "payload": ...}, and optionally queue, priority, scheduled_at,
    max_attempts, timeout, unique_key; KIND and the options are its defaults. All lines or none.

    \b
    Examples:
      pgq enqueue send_email '{"to": "a@example.org"}' --delay 5m
      pgq enqueue --file jobs.jsonl --queue mail
    """
    options = {
        "queue": queue,
        "priority": priority,
        "delay": duration("--delay", delay),
        "scheduled_at": instant("--at", at),
        "max_attempts": max_attempts,
        "timeout": duration("--timeout", timeout),
    }
    if delay is not None and at is not None:
        raise UsageError("give --delay or --at, not both")
    if file is None:
        _enqueue_one(ctx, kind, payload, options | {"unique_key": unique})
    elif payload is not None or unique is not None:
        raise UsageError("with --file, payloads and unique keys are in the lines")
    else:
        _enqueue_file(ctx, file, {"kind": kind, **options})


def _enqueue_one(
    ctx: typer.Context, kind: str | None, payload: str | None, options: dict[str, Any]
) -> None:
    from pgq import client
    from pgq.admin.lines import kind_of
    from pgq.model import NewJob
    from pgq.text import load_object
    from pgq_cli import connection, console

    if payload is None and kind is not None and (kind == "-" or kind.lstrip().startswith("{")):
        kind, payload = None, kind
    if kind is None and payload is None:
        raise UsageError("give a kind, a payload with a type, or --file: see pgq enqueue --help")
    content = {} if payload is None else load_object(_stdin() if payload == "-" else payload)
    if kind is None:
        kind = kind_of(content)
    client.check(NewJob(kind, content, **options))
    with connection.connect(ctx) as conn:
        done = client.enqueue(conn, kind, content, **options)
    console.emit(f"{done.id}\n", machine=True)
    if done.duplicate:
        console.talk(f"pgq: duplicate of job {done.id}, which has this unique key")


def _stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"payload: stdin is not UTF-8 text at byte {error.start + 1}") from None


def _enqueue_file(ctx: typer.Context, path: str, defaults: dict[str, Any]) -> None:
    from time import monotonic

    from pgq.admin import load
    from pgq_cli import connection, console
    from pgq_cli.progress import progress

    start = monotonic()
    with _opened(path) as stream, connection.connect(ctx) as conn, load.spool() as ready:
        try:
            with progress("checking", _size(stream), "bytes") as advance:
                load.read(conn, stream, ready, defaults=defaults, advance=advance)
        except load.BadLines as error:
            for line in error.named:
                console.talk(f"pgq: {line}")
            raise
        with progress("enqueuing", ready.jobs, "jobs") as advance:
            loaded = load.send(conn, ready, advance=advance)
    seconds = monotonic() - start
    console.emit(f"enqueued {loaded.enqueued}, duplicates {loaded.duplicates}\n")
    console.talk(f"pgq: {ready.jobs} jobs in {seconds:.1f} s, {ready.jobs / seconds:,.0f} a second")


def _opened(path: str) -> IO[bytes]:
    if path == "-":
        return sys.stdin.buffer
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise UsageError(f"--file: {path}: {error.strerror}") from None


def _size(stream: IO[bytes]) -> int | None:
    """How many bytes a file has; None for a pipe."""
    status = os.fstat(stream.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None
