"""From a server that does not run to one that takes connections. Wants the lock."""

import threading
import time
from datetime import timedelta
from pathlib import Path

from pgq.embedded import binaries, cluster, database, failures, logs, postmaster
from pgq.embedded.account import Account
from pgq.embedded.layout import Layout
from pgq.embedded.postmaster import Postmaster
from pgq.errors import Unavailable

# A server that recovers after a crash may need longer; it goes on, and the next command waits.
PATIENCE = timedelta(seconds=60)
PAUSE = timedelta(milliseconds=20)
# What the children of a killed server need to notice and to end.
ORPHANS_END = timedelta(seconds=10)


def launch(layout: Layout, owner: Account) -> Postmaster:
    """Start the server, with its programs and data folder made where they are missing."""
    programs = _provide(layout, owner)
    logs.keep_small(layout)
    patience = time.monotonic() + ORPHANS_END.total_seconds()
    while True:
        postmaster.clear_stale(layout)
        match _launch_once(layout, owner, programs):
            case Postmaster() as server:
                return server
            case str() as reason:
                if failures.ORPHANS not in reason or time.monotonic() > patience:
                    raise failures.not_started(reason, layout)
        time.sleep(PAUSE.total_seconds())


def join(layout: Layout, owner: Account, server: Postmaster) -> Postmaster:
    """Wait until a server that somebody else started takes connections."""
    deadline = time.monotonic() + PATIENCE.total_seconds()
    while obstacle := database.obstacle(layout):
        found = postmaster.find(layout, owner)
        if found is None or found.pid != server.pid:
            raise Unavailable("the private PostgreSQL ended meanwhile: try again")
        lost = found.ready and not layout.socket.exists()
        if lost or time.monotonic() > deadline:
            raise _unreachable(layout, server, obstacle)
        time.sleep(PAUSE.total_seconds())
    return server


def _provide(layout: Layout, owner: Account) -> Path:
    """The folder of the programs, with everything in place for a launch."""
    found = binaries.required()
    cluster.remove_unfinished(layout)
    whole = cluster.exists(layout, owner)
    if whole:
        cluster.must_match(layout, found.version)
    programs = binaries.install(layout, found)
    if not whole:
        cluster.create(layout, owner, programs)
    cluster.open_ways(layout, owner)
    return programs


def _launch_once(layout: Layout, owner: Account, programs: Path) -> Postmaster | str:
    """The server once it takes connections, or why it ended."""
    with logs.open_end(layout) as log:
        place = logs.size(layout)
        child = postmaster.launch(layout, owner, programs, log)
    deadline = time.monotonic() + PATIENCE.total_seconds()
    try:
        while obstacle := database.obstacle(layout):
            if child.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(PAUSE.total_seconds())
    finally:
        # Else it would stay a zombie for as long as this process outlives it.
        threading.Thread(target=child.wait, name="pgq-server-reaper", daemon=True).start()
    server = postmaster.find(layout, owner)
    if server is None:
        return failures.cause(logs.since(layout, place))
    if obstacle is None:
        return server
    if child.poll() is None:
        raise _unreachable(layout, server, obstacle)
    # A command that was killed while starting has left one that is coming up.
    return join(layout, owner, server)


def _unreachable(layout: Layout, server: Postmaster, obstacle: str) -> Unavailable:
    if layout.socket.exists():
        remedy = f"it may be recovering: try again, or look into {layout.log}"
    else:
        remedy = f"its socket {layout.socket} is gone: pgq server stop, then start it again"
    return Unavailable(
        f"the private PostgreSQL (process {server.pid}) takes no connections ({obstacle}); {remedy}"
    )
