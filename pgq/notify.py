"""Listening: LISTEN, and a wait for notifications that misses none.

A notification that comes with the answer to a statement is either handed to the driver's handlers
while it reads that answer, or still in libpq's buffer afterwards, where a wait for the socket would
not see it. So both are looked at before each wait.
"""

import select
import socket
from typing import Any

import psycopg
from psycopg import sql

from pgq import db


def channel(worker_id: int) -> str:
    """The channel on which a worker is woken; wake.sql has the same."""
    return f"pgq_{worker_id}"


class Waker:
    """Ends a wait of another thread."""

    def __init__(self) -> None:
        self._read, self._write = socket.socketpair()
        self._read.settimeout(0)
        self._write.settimeout(0)

    def fileno(self) -> int:
        """The descriptor that becomes readable, once and for all."""
        return self._read.fileno()

    def set(self) -> None:
        """End the wait, and every later one."""
        self._write.send(b"!")

    def close(self) -> None:
        """Free the descriptors."""
        self._read.close()
        self._write.close()


class Listener:
    """A connection that listens on a channel."""

    def __init__(self, conn: psycopg.Connection[Any], name: str) -> None:
        self._conn = conn
        self._came = False
        conn.add_notify_handler(self._note)
        with db.driver_errors():
            conn.execute(sql.SQL("listen {}").format(sql.Identifier(name)))

    def wait(self, seconds: float, waker: Waker) -> bool:
        """Wait so long at most; whether a notification came. Ends early when woken.

        Raises ConnectionLost when the connection broke.
        """
        if self._take():
            return True
        with db.driver_errors():
            socket_of_server = self._conn.fileno()
            if socket_of_server not in _poll(seconds, waker.fileno(), socket_of_server):
                return False
            self._conn.pgconn.consume_input()
        return self._take()

    def _note(self, _: psycopg.Notify) -> None:
        self._came = True

    def _take(self) -> bool:
        """Take all notifications that have arrived; whether there were any."""
        came, self._came = self._came, False
        while self._conn.pgconn.notifies() is not None:
            came = True
        return came


def sleep(seconds: float, waker: Waker) -> None:
    """Wait so long, or until woken."""
    _poll(seconds, waker.fileno())


def _poll(seconds: float, *descriptors: int) -> set[int]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {ready for ready, _ in poll.poll(max(0.0, seconds) * 1000)}
