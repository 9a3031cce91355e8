"""Making a worker known in the database."""

import os
import socket
from importlib.metadata import PackageNotFoundError, version

from pgq import db
from pgq.calls import workers as calls
from pgq.calls.queues import schema_version
from pgq.errors import Unavailable
from pgq.worker import log, supervisor
from pgq.worker.heartbeat import Heartbeat
from pgq.worker.options import Options
from pgq.worker.skew import warn_of_skew


def register(options: Options, heartbeat: Heartbeat, *, concurrency: int) -> int:
    """Connect, declare the kinds, register, begin to beat; gives the worker's id.

    Raises Unavailable or SchemaMismatch when there is nothing to work on.
    """
    try:
        return _register(options, heartbeat, concurrency=concurrency)
    except Unavailable:
        heartbeat.disconnect()  # the next attempt needs another connection
        raise


def _register(options: Options, heartbeat: Heartbeat, *, concurrency: int) -> int:
    db.read_statements()
    lock_key = heartbeat.connect()
    ask = heartbeat.ask
    db.require_schema(ask(schema_version()))
    if options.app is not None:
        handlers = [options.app.handlers[kind] for kind in options.served_kinds or ()]
        ask(calls.declare_kinds([handler.defaults for handler in handlers]))
    worker_id = ask(
        calls.register(
            host=socket.gethostname(),
            pid=os.getpid(),
            version=_version(),
            queues=options.served_queues,
            kinds=options.served_kinds,
            concurrency=concurrency,
            lock_key=lock_key,
        ),
    )
    warn_of_skew(ask)
    heartbeat.start(worker_id)
    log.info(
        "worker started",
        worker=f"w-{worker_id}",
        queues=",".join(options.served_queues),
        kinds=",".join(options.served_kinds or ["any"]),
        concurrency=concurrency,
        database=db.describe(options.dsn),
    )
    if heartbeat.pooled:
        log.warning(
            "a pooler is between the worker and the database: it polls, and its death shows "
            "only after the visibility timeout"
        )
    for doubt in options.doubts:
        log.warning(doubt)
    supervisor.ready()
    return worker_id


def _version() -> str:
    try:
        return version("pgq-toolkit")
    except PackageNotFoundError:
        return "unknown"
