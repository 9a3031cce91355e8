"""The connection by which others see that a worker lives.

On it the worker holds a session advisory lock, listens on its channel, and beats. A call that is
not answered in time is not waited for for ever: the connection is replaced. The new one takes a
lock and beats before the old one is dropped, so that a worker which is only hard to reach is never
without a sign of life.
"""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import psycopg

from pgq import db
from pgq.calls import Call
from pgq.calls import workers as calls
from pgq.errors import ConnectionLost, PgqError, Unavailable
from pgq.notify import Listener, Waker, channel, sleep
from pgq.reach import Place
from pgq.runner import fork
from pgq.runner.interrupt import clock

T = TypeVar("T")

CONNECT = 2
"""Seconds that one attempt to connect may take."""

ANSWER = 5.0
"""Seconds in which a call must be answered; well below every visibility timeout."""


LATE = 1.0
"""Seconds by which the end of that time may be noticed late, and still be believed."""


class _Session:
    """One connection, and the key of the lock that it holds (None through a pooler)."""

    def __init__(self, dsn: str) -> None:
        self.conn = db.connect(
            dsn, application_name="pgq worker heartbeat", connect_timeout=CONNECT
        )
        self.lock_key: int | None = None
        self.listener: Listener | None = None
        try:
            with _bounded(self.conn):
                self._prepare()
            self._descriptor = self.conn.fileno()
            fork.own(self._descriptor)
        except BaseException:
            self.conn.close()
            raise

    def _prepare(self) -> None:
        if db.run(self.conn, calls.session()).pid != self.conn.info.backend_pid:
            return
        with db.driver_errors():
            # What the server forgets of this session in a crash is done again: another beat,
            # another reap. Not through a pooler: the setting would stay on a session that others
            # use. And nothing but its end ends it: a server that is quick to give up silent
            # clients would take the lock of a worker that is only hard to reach.
            self.conn.execute("set synchronous_commit = off")
            self.conn.execute("set tcp_keepalives_idle = 0")
            self.conn.execute("set tcp_user_timeout = 0")
        db.run(self.conn, calls.prepare_session())
        self.lock_key = random.SystemRandom().randrange(1, 2**63)
        db.run(self.conn, calls.lock(self.lock_key))

    def listen(self, worker_id: int) -> None:
        """Hear when jobs may be due for this worker."""
        if self.lock_key is not None:
            with _bounded(self.conn):
                self.listener = Listener(self.conn, channel(worker_id))

    def close(self) -> None:
        fork.disown(self._descriptor)  # also where the driver has closed it: it is another's then
        self.conn.close()


class Lifeline:
    """A session that is replaced when it stalls, and made anew when it is lost."""

    def __init__(
        self, dsn: str, revive: Callable[[psycopg.Connection[Any], int | None], None]
    ) -> None:
        """`revive` beats on a new connection, with the key of its lock."""
        self._dsn = dsn
        self._revive = revive
        self._session: _Session | None = None
        self._replacement: _Session | None = None
        self._worker_id: int | None = None
        self._closed = False
        self._lock = threading.Lock()
        """Held to take or drop a session: connecting takes a while, and may end after close()."""
        self.waker = Waker()
        self.place: Place | None = None
        """Where the server was found last."""
        self.lock_key: int | None = None

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The connection, for what comes before the first beat."""
        assert self._session is not None
        return self._session.conn

    def connect(self) -> None:
        """Connect unless there is a connection, take the lock, listen; Unavailable if it fails."""
        if self._session is not None:
            return
        session, self._replacement = self._replacement, None
        if session is None:
            session = _Session(self._dsn)
        with self._lock:
            if self._closed:
                session.close()
                raise Unavailable("this worker has stopped")
            self._session, self.lock_key = session, session.lock_key
        self.place = Place.of(session.conn)
        if self._worker_id is not None:
            session.listen(self._worker_id)

    def listen(self, worker_id: int) -> None:
        """Hear of this worker's jobs, now and after each reconnection."""
        self._worker_id = worker_id
        assert self._session is not None
        self._session.listen(worker_id)

    def ask(self, call: Call[T]) -> T:
        """Run a call before the first beat; ConnectionLost if no answer comes."""
        with _bounded(self.connection):
            return db.run(self.connection, call)

    def run(self, call: Call[T]) -> T:
        """Run a call; if no answer comes, ConnectionLost once a replacement was tried for."""
        conn = self.connection
        with _bounded(conn, self._replace):
            return db.run(conn, call)

    def _replace(self) -> None:
        """In a thread of its own, while the call waits: connect anew, beat, then drop the old."""
        old = self.connection
        try:
            with contextlib.suppress(PgqError):
                self._replacement = self._revived()
        finally:
            db.cut(old)

    def _revived(self) -> _Session:
        fresh = _Session(self._dsn)
        try:
            with _bounded(fresh.conn):
                self._revive(fresh.conn, fresh.lock_key)
        except BaseException:
            fresh.close()
            raise
        return fresh

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until woken; whether jobs may be due. ConnectionLost when it broke."""
        listener = self._session.listener if self._session else None
        if listener is None:
            sleep(seconds, self.waker)
            return False
        return listener.wait(seconds, self.waker)

    def lose(self) -> None:
        """Drop the connection; connect() makes another one."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            session.close()

    def close(self) -> None:
        """Drop everything, and release the lock; connect() makes nothing new."""
        self._closed = True
        self.lose()
        if self._replacement is not None:
            self._replacement.close()
        self.waker.close()


@contextlib.contextmanager
def _bounded(
    conn: psycopg.Connection[Any], on_stall: Callable[[], None] | None = None
) -> Iterator[None]:
    """Let the body wait for answers on this connection for a bounded time."""
    began = clock()
    answered = threading.Event()
    stalled = on_stall or (lambda: db.cut(conn))
    watch = threading.Thread(target=_watch, args=(answered, stalled), daemon=True)
    try:
        watch.start()
    except RuntimeError:  # no thread can be had now: then without a bound
        yield
        return
    try:
        yield
    except ConnectionLost as error:
        if clock() - began >= ANSWER:
            raise ConnectionLost(f"no answer from the database for {ANSWER:g} s") from error
        raise
    finally:
        answered.set()
        watch.join()


def _watch(answered: threading.Event, stalled: Callable[[], None]) -> None:
    """Call `stalled` when the answer does not come in time."""
    due = clock() + ANSWER
    while not answered.wait(max(0.0, due - clock())):
        if clock() - due < LATE:
            stalled()
            return
        # Nothing here ran meanwhile, and the answer is perhaps there: it has its time again.
        due = clock() + ANSWER
