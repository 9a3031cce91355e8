"""What stands where the database should be, for a worker that cannot get in.

It is asked without matching the text of an error: libpq's PQping tells a server that runs from one
that starts or is not there, and a plain socket tells a closed port from a network that is cut.
"""

import contextlib
import socket
import struct
import threading
from enum import Enum
from typing import Any, NamedTuple

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_attempts, conninfo_to_dict, make_conninfo

from pgq import db

PATIENCE = 2
"""Seconds in which a host must answer."""

# Any server answers this with one byte ("SSLRequest" of the protocol).
_KNOCK = struct.pack("!ii", 8, 80877103)


class Reach(Enum):
    """How far one gets; a later one outweighs the ones before, over several hosts."""

    CLOSED = "no server takes work there now: it is down, starts, or is a standby"
    SILENT = "no answer"
    REFUSED = "a running server does not let us in"


class Place(NamedTuple):
    """Where a server was found once."""

    host: str
    port: int

    @classmethod
    def of(cls, conn: psycopg.Connection[Any]) -> "Place":
        """Where this connection leads."""
        return cls(conn.info.hostaddr or conn.info.host, conn.info.port)


def reach(dsn: str, known: Place | None = None) -> Reach:
    """What answers where this DSN points; takes at most a few seconds a host.

    `known`: where the server was when it answered last, for a DSN that leaves it to the environment
    or to a service file.
    """
    try:
        attempts = conninfo_attempts(conninfo_to_dict(dsn))
    except psycopg.Error:  # no host could be resolved
        return Reach.SILENT
    found = [_reach(dict(attempt), known) for attempt in attempts]
    order = list(Reach)
    return max(found, key=order.index, default=Reach.CLOSED)


def _reach(attempt: dict[str, Any], known: Place | None) -> Reach:
    attempt.pop("target_session_attrs", None)
    attempt["connect_timeout"] = PATIENCE
    info = make_conninfo("", **attempt)
    match pq.PGconn.ping(info.encode()):
        case pq.Ping.OK:
            return _enter(info)
        case pq.Ping.REJECT:  # it starts, or stops
            return Reach.CLOSED
        case pq.Ping.NO_RESPONSE:
            return _knock(_place(attempt, known))
        case _:  # nothing could be asked
            return Reach.SILENT


def _enter(info: str) -> Reach:
    """How far one gets where a server runs.

    One that lets in is a standby, or has just come back; or it is a pooler, which lets in without a
    server behind it: that says so, or, if only its way there is cut, does not answer.
    """
    cut = threading.Event()
    try:
        conn = psycopg.connect(info, autocommit=True)
    except psycopg.Error:
        return Reach.REFUSED

    def give_up() -> None:
        cut.set()
        db.cut(conn)

    late = threading.Timer(PATIENCE, give_up)
    late.start()
    with contextlib.closing(conn), contextlib.suppress(psycopg.Error):
        conn.execute("select")
    late.cancel()
    return Reach.SILENT if cut.is_set() else Reach.CLOSED


def _place(attempt: dict[str, Any], known: Place | None) -> Place | None:
    """Where this attempt leads, as far as one can tell."""
    host, port = attempt.get("hostaddr") or attempt.get("host"), attempt.get("port")
    if host is None and known is None:
        return None
    if known is None or (host is not None and port is not None):
        return Place(str(host), int(port or 5432))
    return Place(str(host or known.host), int(port or known.port))


def _knock(place: Place | None) -> Reach:
    """Tell a port that is closed, or whose owner hangs up, from silence."""
    if place is None:
        return Reach.SILENT
    if place.host.startswith(("/", "@")):
        return Reach.CLOSED  # a socket of this machine
    try:
        with socket.create_connection(place, PATIENCE) as door:
            door.sendall(_KNOCK)
            door.recv(1)
    except (ConnectionRefusedError, ConnectionResetError, BrokenPipeError):
        return Reach.CLOSED
    except OSError:
        return Reach.SILENT
    return Reach.CLOSED
