"""What handlers log: the end of it is kept with the job that logged it.

Each job sets a context variable as it starts. Tasks that a handler starts and asyncio.to_thread()
inherit it, so that a record finds its job wherever it is emitted, and one of a task that was left
behind does not land with the next job. A record that cannot be written never breaks a handler.
"""

import logging
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime

from pgq.runner.output import TAIL, Tail
from pgq.runner.running import Running
from pgq.runner.verdict import trace
from pgq.text import format_time, safe, safe_lines, storable

KEPT_OF_ONE = TAIL // 4
"""Longest message, and longest traceback, of one record that is kept with a job, in characters."""

current: ContextVar[Running | None] = ContextVar("pgq_running", default=None)
"""The job that was started last in this context."""


def here() -> Running | None:
    """The job whose handler says this; None outside of handlers, and after their end."""
    running = current.get()
    return None if running is None or running.over else running


def message(record: logging.LogRecord, limit: int) -> str:
    """The text of a record, cut in the middle if it is longer than so many characters."""
    plain: object = record.msg
    try:
        text = record.getMessage()
    except BaseException:  # noqa: BLE001 - how arguments are written is the application's code
        text = plain if type(plain) is str else "(its text cannot be read)"
    return storable(text, limit)


def traceback(record: logging.LogRecord, limit: int) -> str | None:
    """The traceback or stack that comes with a record, cut likewise."""
    error = record.exc_info[1] if record.exc_info else None
    text = trace(error) if error is not None else record.stack_info
    return storable(text, limit) if text else None


def lines(record: logging.LogRecord) -> str:
    """A record as it is kept; only its traceback, indented, goes over more lines than one."""
    at = format_time(datetime.fromtimestamp(record.created, UTC))
    text = safe(message(record, KEPT_OF_ONE))
    head = f"{at} {safe(record.levelname.lower())} {safe(record.name)}: {text}"
    return "\n".join([head, *indented(traceback(record, KEPT_OF_ONE))]) + "\n"


def indented(text: str | None) -> Iterator[str]:
    """The lines of a text, such that none can pass for a line of the log."""
    for line in safe_lines(text or "").rstrip("\n").split("\n"):
        if line:
            yield f"  {line}"


class Recorder(logging.Handler):
    """Keeps the end of what the running job logs."""

    def emit(self, record: logging.LogRecord) -> None:
        """Add the record to its job's output."""
        running = here()
        if running is None:
            return
        try:
            written = lines(record).encode("utf-8", "backslashreplace")
        except BaseException:  # noqa: BLE001 - a record may hold anything
            return
        if running.tail is None:
            running.tail = Tail()
        running.tail.feed(written)


_recorder = Recorder()


def listen(*, apart: logging.Logger) -> None:
    """Hear what every logger says but `apart`: at the root, and at those that do not propagate."""
    root = logging.getLogger()
    known = [each for each in root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    for logger in (root, *(each for each in known if not each.propagate)):
        if logger is not apart:
            logger.addHandler(_recorder)
