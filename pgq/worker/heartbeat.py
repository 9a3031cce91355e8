"""The heartbeat: a thread and a connection of its own, so that no handler can delay a beat.

On that connection the worker holds the session advisory lock by which others see that it lives,
and listens on its channel. Through a transaction pooler neither works: then the beats alone tell
that it lives (for the visibility timeout), and it finds its jobs by polling.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg

from pgq import db
from pgq.calls import workers as calls
from pgq.calls.jobs import Progress, note_progress
from pgq.errors import PgqError, Unavailable
from pgq.model import ClaimedJob
from pgq.notify import Listener, Waker, channel, sleep
from pgq.runner import fork
from pgq.runner.interrupt import Interrupt, clock
from pgq.worker import log

PERIOD = 2.0
"""Seconds between two beats; well below the 4 after which a worker is looked at."""

CONNECT = 2
"""Seconds that one attempt to connect may take."""

REAP_LIMIT = 1000
"""Jobs given back in one statement; a beat comes between two."""

UPKEEP = 60.0
"""Seconds between two rounds of upkeep."""

RETRY = 0.5
"""Seconds at most between two attempts to beat again after a loss."""


@dataclass(frozen=True, slots=True)
class Hears:
    """Whom the heartbeat tells what it heard; each is called from its thread."""

    woken: Callable[[], None]
    """Jobs may be due."""
    asked: Callable[[Interrupt, list[int]], None]
    """These running jobs were asked to end."""
    dead: Callable[[], None]
    """Others declared this worker dead."""


class Heartbeat:
    """Beats until stopped."""

    def __init__(self, dsn: str, hears: Hears) -> None:
        self._dsn = dsn
        self._hears = hears
        self._stop = threading.Event()
        self._waker = Waker()
        self._thread: threading.Thread | None = None
        self._conn: psycopg.Connection[Any] | None = None
        self._listener: Listener | None = None
        self._lock_key: int | None = None
        self._upkeep_at = 0.0
        self._progress: dict[int, Progress] = {}
        """By lease: the latest word of each job that said something since the last beat."""
        self.worker_id = 0
        self.draining = False

    def note_progress(self, job: ClaimedJob, text: str) -> None:
        """Write this with the next beat."""
        self._progress[job.lease] = Progress(job, text)

    def connect(self) -> int | None:
        """Connect, and take the lock; gives its key, or None through a pooler."""
        conn = db.connect(
            self._dsn, application_name="pgq worker heartbeat", connect_timeout=CONNECT
        )
        try:
            key = None
            if db.run(conn, calls.backend_pid()) == conn.info.backend_pid:
                with db.driver_errors():
                    # What the server forgets of this session in a crash is done again: another
                    # beat, another reap. Not through a pooler: the setting would stay on a session
                    # that others use.
                    conn.execute("set synchronous_commit = off")
                db.run(conn, calls.use_read_committed())
                key = random.SystemRandom().randrange(1, 2**63)
                db.run(conn, calls.lock(key))
            else:
                conn.prepare_threshold = None
            fork.own(conn.fileno())
            self._conn, self._lock_key = conn, key
        except BaseException:
            conn.close()
            raise
        return key

    def start(self, worker_id: int) -> None:
        """Beat for this worker from now on; connect() comes first."""
        self.worker_id = worker_id
        self._listen()
        self._thread = threading.Thread(target=self._guarded, name="pgq-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Beat no more, and release the lock."""
        self._stop.set()
        self._waker.set()
        if self._thread is not None:
            self._thread.join(timeout=PERIOD * 2)
        self._close()
        self._waker.close()

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The connection that connect() made, for what comes before start()."""
        assert self._conn is not None
        return self._conn

    @property
    def pooled(self) -> bool:
        """Whether a pooler stands between: no lock is held and nothing is heard."""
        return self._lock_key is None

    def _guarded(self) -> None:
        try:
            self._run()
        except Exception as error:  # a worker without a heartbeat must not go on
            log.error("heartbeat ended", error=repr(error))
            self._hears.dead()
            raise

    def _run(self) -> None:
        lost = False
        refused = ""
        while not self._stop.is_set():
            try:
                if self._conn is None:
                    self.connect()
                    self._listen()
                conn = self._conn
                assert conn is not None
                if lost:
                    log.info("database back", loop="heartbeat")
                    lost = False
                    self._hears.woken()
                beat = self._beat(conn)
                self._write_progress(conn)
                self._keep_up(conn)
                if beat.reap_in is not None and beat.reap_in < PERIOD:
                    self._pause(beat.reap_in)
                    self._reap(conn)
                    self._pause(PERIOD - beat.reap_in)
                else:
                    if beat.overdue:
                        self._reap(conn)
                    self._pause(PERIOD)
            except Unavailable as error:
                self._close()
                if not lost:
                    log.warning("database lost", loop="heartbeat", error=str(error))
                    lost = True
                self._stop.wait(RETRY * random.uniform(0.5, 1.0))
            except PgqError as error:
                if str(error) != refused:
                    log.error("heartbeat refused", error=str(error))
                    refused = str(error)
                self._stop.wait(PERIOD)

    def _listen(self) -> None:
        self._listener = None if self.pooled else Listener(self.connection, channel(self.worker_id))

    def _beat(self, conn: psycopg.Connection[Any]) -> calls.Beat:
        beat = db.run(
            conn,
            calls.heartbeat(self.worker_id, lock_key=self._lock_key, draining=self.draining),
        )
        if not beat.alive:
            self._stop.set()
            self._hears.dead()
        if beat.cancelled:
            self._hears.asked(Interrupt.CANCEL, beat.cancelled)
        if beat.killed:
            self._hears.asked(Interrupt.KILL, beat.killed)
        return beat

    def _write_progress(self, conn: psycopg.Connection[Any]) -> None:
        news, self._progress = self._progress, {}
        if news:
            db.run(conn, note_progress(list(news.values())))

    def _keep_up(self, conn: psycopg.Connection[Any]) -> None:
        """Once a minute: what no silence announces, jobs of workers that are unknown or stopped."""
        if clock() >= self._upkeep_at:
            self._upkeep_at = clock() + UPKEEP * random.uniform(0.8, 1.2)
            self._reap(conn)
            db.run(conn, calls.tidy())

    def _reap(self, conn: psycopg.Connection[Any]) -> None:
        more = True
        while more and not self._stop.is_set():
            reaped = db.run(conn, calls.reap(limit=REAP_LIMIT, watcher=self.worker_id))
            back = Counter(job.worker_id for job in reaped if job.error is None)
            for worker_id, jobs in back.items():
                log.warning("dead worker's jobs given back", worker=f"w-{worker_id}", jobs=jobs)
            for job in reaped:
                if job.error is not None:
                    log.error("job not given back", job=job.job_id, error=job.error)
            more = len(reaped) == REAP_LIMIT
            if more:
                self._beat(conn)

    def _pause(self, seconds: float) -> None:
        """Wait; tell of each notification on the way."""
        until = clock() + seconds
        while (left := until - clock()) > 0 and not self._stop.is_set():
            if self._listener is None:
                sleep(left, self._waker)
            elif self._listener.wait(left, self._waker):
                self._hears.woken()

    def _close(self) -> None:
        if self._conn is not None:
            conn, self._conn = self._conn, None
            if not conn.closed:
                fork.disown(conn.fileno())
            conn.close()
