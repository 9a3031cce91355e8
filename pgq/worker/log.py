"""The worker's log, on stderr: a line an event, as text for people or JSON for machines.

What the application logs goes there too, unless the application sends it elsewhere: as events named
`log`, with the job whose handler said it. However it is written, nothing it says can pass for a
line or a field of the log; and no record, and no stderr that is gone, can stop the worker.
"""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any

from pgq.runner import records
from pgq.text import format_time, safe
from pgq.worker.writer import Writer

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")

LONGEST = 20_000
"""How many characters of one message, or one traceback, of the application's are written."""

# Known to nobody: logging.config would disable it, and with it all that the worker has to say.
logger = logging.Logger("pgq.worker")
_writer: Writer | None = None


def event(level: int, name: str, **fields: Any) -> None:
    """Log an event with its fields; fields that are None are left out."""
    if logger.isEnabledFor(level):
        kept = {key: value for key, value in fields.items() if value is not None}
        logger.log(level, name, extra={"fields": kept})


def info(name: str, **fields: Any) -> None:
    """An expected event."""
    event(logging.INFO, name, **fields)


def warning(name: str, **fields: Any) -> None:
    """An event that someone should know of."""
    event(logging.WARNING, name, **fields)


def error(name: str, **fields: Any) -> None:
    """An event that someone must act on."""
    event(logging.ERROR, name, **fields)


def configure(*, style: str, level: str) -> None:
    """Send the log to stderr in this style, `text` or `json`; keep what handlers log.

    An application that has given the root logger a handler keeps its own way of logging.
    """
    least = getattr(logging, level.upper())
    global _writer  # noqa: PLW0603 - a process has one standard error
    _writer = Writer(sys.stderr)
    stderr = Stderr(_writer)
    stderr.setLevel(least)
    stderr.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    logger.handlers = [stderr]
    logger.propagate = False
    logger.setLevel(least)
    root = logging.getLogger()
    if all(isinstance(handler, Stderr | records.Recorder) for handler in root.handlers):
        root.handlers = [stderr]
        root.setLevel(min(root.level, least, logging.INFO))
    records.listen(apart=logger)


def flush(seconds: float) -> None:
    """Wait until all is written, but no longer than this: before a process ends."""
    if _writer is not None:
        _writer.flush(seconds)


class Stderr(logging.Handler):
    """Writes lines as long as there is somebody to read them."""

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, whatever it holds."""
        try:
            line = self.format(record)
        except BaseException:  # noqa: BLE001 - a record may hold anything
            return
        self._writer.write(line)


class TextFormatter(logging.Formatter):
    """`2030-01-31T08:00:00.123Z info job failed job=7 kind=send_email error="boom"`."""

    def format(self, record: logging.LogRecord) -> str:
        name, fields = _event(record)
        # For people a traceback goes over many lines, all of them indented.
        lines = records.indented(fields.get("traceback"))
        shown = [f"{key}={_text(fields[key])}" for key in fields if key != "traceback"]
        head = f"{_time(record)} {_level(record)} {safe(name)}"
        return "\n".join([" ".join([head, *shown]), *lines])


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, event, and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        name, fields = _event(record)
        line = {"time": _time(record), "level": _level(record), "event": name}
        return json.dumps(line | fields, default=str)


def _event(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """The name and the fields of an event; what the application logs is all one event."""
    if record.name == logger.name:
        return record.getMessage(), getattr(record, "fields", {})
    fields: dict[str, Any] = {"message": records.message(record, LONGEST), "logger": record.name}
    running = records.here()
    if running is not None:
        fields |= {"job": running.job.id, "kind": running.job.kind}
    traceback = records.traceback(record, LONGEST)
    return "log", fields if traceback is None else fields | {"traceback": traceback}


def _time(record: logging.LogRecord) -> str:
    return format_time(datetime.fromtimestamp(record.created, UTC))


def _level(record: logging.LogRecord) -> str:
    return safe(record.levelname.lower())


def _text(value: object) -> str:
    """A value as one word, or in quotes; what is in it cannot pass for another field."""
    text = str(value)
    plain = bool(text) and not _QUOTED.search(text)
    return safe(text if plain else '"' + _ESCAPED.sub(r"\\\g<0>", text) + '"')


_QUOTED = re.compile(r'[\s"=\\]')
_ESCAPED = re.compile(r'["\\]')
