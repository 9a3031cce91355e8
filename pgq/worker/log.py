"""The worker's log: an event and fields, as text for people or JSON for machines, on stderr."""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any

from pgq.text import format_time, safe

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")

logger = logging.getLogger("pgq.worker")


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
    """Send the log to stderr in this style, `text` or `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(getattr(logging, level.upper()))


class TextFormatter(logging.Formatter):
    """`2030-01-31T08:00:00.123Z info job failed job=7 kind=send_email error="boom"`."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        shown = [f"{key}={_text(value)}" for key, value in fields.items()]
        head = f"{_time(record)} {record.levelname.lower()} {safe(record.getMessage())}"
        return " ".join([head, *shown])


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, event, and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"time": _time(record), "level": record.levelname.lower()}
        line |= {"event": record.getMessage()} | getattr(record, "fields", {})
        return json.dumps(line, default=str)


def _time(record: logging.LogRecord) -> str:
    return format_time(datetime.fromtimestamp(record.created, UTC))


def _text(value: object) -> str:
    """A value as one word, or in quotes; what is in it cannot pass for another field."""
    text = str(value)
    plain = bool(text) and not _QUOTED.search(text)
    return safe(text if plain else '"' + _ESCAPED.sub(r"\\\g<0>", text) + '"')


_QUOTED = re.compile(r'[\s"=\\]')
_ESCAPED = re.compile(r'["\\]')
