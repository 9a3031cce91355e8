"""What an exception means to the one who ran the command: a line, and an exit code. Pure."""

import re
import traceback
from dataclasses import dataclass

import typer

from pgq.errors import PgqError
from pgq.text import safe

UNEXPECTED = 1
USAGE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141
"""As for a program that SIGPIPE ended: 128 + 13."""

# Typer gives names to the leaves of Click's errors only, and may bring a Click of its own.
_CommandLineError: type[Exception] = typer.BadParameter.__mro__[1]

_SECRETS = (
    (re.compile(r"(://[^\s/:@]*:)\S*@"), r"\1***@"),
    (re.compile(r"(\bpassword\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)", re.IGNORECASE), r"\1***"),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """What to say on stderr, without secrets, and the exit code."""

    text: str
    exit_code: int


def explain(error: BaseException, *, debug: bool) -> Failure:
    """One line that says what went wrong; with `debug`, the traceback above it."""
    code, line = _summary(error)
    if debug:
        # Without local variables, which hold DSNs and payloads.
        lines = "".join(traceback.format_exception(error)).splitlines()
        return Failure(redact("\n".join([*map(safe, lines), safe(line)])), code)
    return Failure(redact(safe(line)), code)


def redact(text: str) -> str:
    """The text without the passwords of the DSNs in it."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _summary(error: BaseException) -> tuple[int, str]:
    match error:
        case PgqError():
            return error.exit_code, f"pgq: {error}"
        case _CommandLineError():
            return USAGE, _usage(error)
        case KeyboardInterrupt() | typer.Abort():
            return INTERRUPTED, "pgq: interrupted"
        case OSError() if error.filename is not None or error.strerror is not None:
            where = f"{error.filename}: " if error.filename else ""
            return UNEXPECTED, f"pgq: {where}{error.strerror}"
        case _:
            return UNEXPECTED, (
                f"pgq: unexpected {type(error).__name__}: {error}: set PGQ_DEBUG=1 to see where, "
                "and report it"
            )


def _usage(error: Exception) -> str:
    message = " ".join(str(getattr(error, "format_message", lambda: error)()).split())
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "pgq"
    if context and context.parent and getattr(error, "option_name", None) == "--dsn":
        message = "--dsn comes before the command: pgq --dsn DSN COMMAND"
    return f"pgq: {message.rstrip('.')} (see {command} --help)"
