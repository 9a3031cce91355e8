"""What handlers in child processes log is logged by the worker, and so kept with their job."""

import logging
from collections.abc import Callable
from contextlib import suppress

from pgq.runner.records import message, traceback
from pgq.runner.verdict import MAX_TRACEBACK
from pgq.runner.wire import Logged


class Forwarder(logging.Handler):
    """In a child: sends the records of the running job to the worker.

    It stands for all handlers of the root logger: the worker, which has imported the same modules,
    has those that the application gave it, and writes each record once.
    """

    def __init__(self, send: Callable[[Logged], None]) -> None:
        super().__init__()
        self._forward = send
        self._lease = 0

    def attach(self, lease: int, *, least: int) -> None:
        """Listen at the root logger for this job."""
        self._lease = lease
        root = logging.getLogger()
        if root.handlers != [self]:
            root.handlers = [self]
        if root.level != least:
            root.setLevel(least)

    def emit(self, record: logging.LogRecord) -> None:
        """Send it; a record that cannot be written never breaks a handler."""
        try:
            logged = Logged(
                lease=self._lease,
                logger=str(record.name),
                level=int(record.levelno),
                created=float(record.created),
                message=message(record, MAX_TRACEBACK),
                traceback=traceback(record, MAX_TRACEBACK),
            )
        except Exception:  # noqa: BLE001 - a record may hold anything
            return
        self._forward(logged)


def log_level() -> int:
    """The least severe records that this process hears from applications."""
    return logging.getLogger().level


def replay(logged: Logged) -> None:
    """In the worker: log what a child has sent, in the thread that attends its job."""
    record = logging.makeLogRecord(
        {
            "name": logged.logger,
            "levelno": logged.level,
            "levelname": logging.getLevelName(logged.level),
            "created": logged.created,
            "msg": logged.message,
            "stack_info": logged.traceback,
        }
    )
    # Not by its own logger: a name once asked for stays for ever, and a child may make up many.
    with suppress(Exception):  # a filter or handler of the application
        logging.getLogger().handle(record)
