"""The heartbeat: a thread and a connection of its own, so that no handler can delay a beat.

Besides beating it hears what the worker must know, and looks for dead workers. Through a
transaction pooler there is neither lock nor channel: then the beats alone tell that the worker
lives (for the visibility timeout), and it finds its jobs by polling.
"""

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg

from pgq import db
from pgq.calls import Call
from pgq.calls import workers as calls
from pgq.errors import Conflict, PgqError, Unavailable
from pgq.reach import Reach, reach
from pgq.runner.interrupt import Interrupt, clock
from pgq.worker import log
from pgq.worker.board import Board
from pgq.worker.lifeline import Lifeline
from pgq.worker.standin import Pulse, State
from pgq.worker.vigil import Vigil

T = TypeVar("T")

PERIOD = 2.0
"""Seconds between two beats; well below the 4 after which a worker is looked at."""

REAP_LIMIT = 1000
"""Jobs given back in one statement; a beat comes between two."""

UPKEEP = 60.0
"""Seconds between two rounds of upkeep."""

RETRY = 0.5
"""Seconds at most between two attempts to beat again after a loss."""


@dataclass(frozen=True, slots=True)
class Hears:
    """Whom the heartbeat tells what it heard, and asks; each is called from its thread."""

    woken: Callable[[], None]
    """Jobs may be due."""
    asked: Callable[[Interrupt, list[int]], None]
    """These running jobs were asked to end."""
    dead: Callable[[], None]
    """Others declared this worker dead."""
    broken: Callable[[str], None]
    """This worker can beat no more, for this reason."""
    forfeit: Callable[[str], None]
    """Others may declare this worker dead soon: what runs must end now."""
    trouble: Callable[[], str | None]
    """What of the worker cannot do its work now."""
    elsewhere: Callable[[Call[calls.Beat]], calls.Beat]
    """Run a beat on a connection of another loop; Unavailable if none is open."""


def _nothing(*_: object) -> None:
    pass


def _nowhere(_: Call[calls.Beat]) -> calls.Beat:
    raise Unavailable("this worker has stopped")


DEAF = Hears(
    woken=_nothing,
    asked=_nothing,
    dead=_nothing,
    broken=_nothing,
    forfeit=_nothing,
    trouble=lambda: None,
    elsewhere=_nowhere,
)
"""Whom a stopped heartbeat tells, while its threads end: another worker may live by now."""


class Heartbeat:
    """Beats until stopped."""

    def __init__(self, dsn: str, hears: Hears, board: Board) -> None:
        """`board` has what is to be written of the jobs' progress."""
        self._dsn = dsn
        self._hears = hears
        self._board = board
        self._lifeline = Lifeline(dsn, self._revive)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._upkeep_at = 0.0
        self._vigil = Vigil(self._forfeit)
        self.worker_id = 0
        self.draining = False
        self._pulse = Pulse(dsn, self._state)

    def connect(self) -> int | None:
        """Connect, and take the lock; gives its key, or None through a pooler."""
        self._lifeline.connect()
        return self._lifeline.lock_key

    def start(self, worker_id: int) -> None:
        """Beat for this worker from now on; connect() comes first."""
        self.worker_id = worker_id
        self._vigil.heard(clock())
        self._lifeline.listen(worker_id)
        self._thread = self._begin("pgq-heartbeat", self._run)
        self._begin("pgq-vigil", lambda: self._vigil.watch(self._stop))
        self._pulse.start()

    def stop(self) -> None:
        """Beat no more, and release the lock."""
        self._pulse.stop()
        self._stop.set()
        self._lifeline.waker.set()
        if self._thread is not None:
            self._thread.join(timeout=PERIOD * 2)
        self._hears = DEAF
        self._lifeline.close()

    def disconnect(self) -> None:
        """Let the connection that connect() made go; before start()."""
        self._lifeline.lose()

    def ask(self, call: Call[T]) -> T:
        """Run a call on the connection that connect() made; before start()."""
        return self._lifeline.ask(call)

    @property
    def pooled(self) -> bool:
        """Whether a pooler stands between: no lock is held and nothing is heard."""
        return self._lifeline.lock_key is None

    def _forfeit(self, why: str) -> None:
        self._hears.forfeit(why)

    def _state(self) -> State:
        return State(self.worker_id, self._lifeline.lock_key, self.draining)

    def _begin(self, name: str, run: Callable[[], None]) -> threading.Thread:
        """Start a thread whose end is told: a worker without it must not go on."""

        def guarded() -> None:
            try:
                run()
            except Exception as error:  # noqa: BLE001 - told
                self._hears.broken(repr(error))

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        lost = False
        refused = ""
        while not self._stop.is_set():
            try:
                self._lifeline.connect()
                beat = self._beat()
                if lost:
                    log.info("database back", loop="heartbeat")
                    lost = False
                    self._hears.woken()
                self._board.write(self._lifeline.run)
                self._keep_up()
                self._rest(beat)
                refused = ""
            except Unavailable as error:
                self._lifeline.lose()
                if not lost:
                    log.warning("database lost", loop="heartbeat", error=str(error))
                    lost = True
                self._cling()
                self._stop.wait(self._retry_in())
            except PgqError as error:
                if str(error) != refused:
                    log.error("heartbeat refused", error=str(error))
                    refused = str(error)
                self._stop.wait(PERIOD)

    def _beat(self) -> calls.Beat:
        sent_at = clock()
        beat = self._lifeline.run(self._call(self._lifeline.lock_key))
        self._heard(beat, sent_at)
        return beat

    def _call(self, lock_key: int | None) -> Call[calls.Beat]:
        return calls.heartbeat(
            self.worker_id,
            lock_key=lock_key,
            draining=self.draining,
            trouble=self._hears.trouble(),
        )

    def _revive(self, conn: psycopg.Connection[Any], lock_key: int | None) -> None:
        """Beat on a new connection, in another thread: the old one does not answer."""
        sent_at = clock()
        self._heard(db.run(conn, self._call(lock_key)), sent_at)

    def _heard(self, beat: calls.Beat, sent_at: float) -> None:
        self._vigil.heard(sent_at, forgiven=beat.forgiven)
        if not beat.alive:
            self._stop.set()
            self._hears.dead()
        if beat.cancelled:
            self._hears.asked(Interrupt.CANCEL, beat.cancelled)
        if beat.killed:
            self._hears.asked(Interrupt.KILL, beat.killed)

    def _cling(self) -> None:
        """Without a connection: beat over that of another loop, or see what others may think."""
        sent_at = clock()
        try:
            self._heard(self._hears.elsewhere(self._call(None)), sent_at)
        except PgqError:
            self._vigil.judge(self._look, pooled=self.pooled)

    def _look(self) -> Reach:
        return reach(self._dsn, self._lifeline.place)

    def _retry_in(self) -> float:
        """Soon, with jitter; and just when it is time to judge, if that comes first."""
        wait = RETRY * random.uniform(0.5, 1.0)
        return min(wait, self._vigil.due_in() or wait)

    def _keep_up(self) -> None:
        """Once a minute: what no silence announces, jobs of workers that are unknown or stopped."""
        if clock() >= self._upkeep_at:
            self._upkeep_at = clock() + UPKEEP * random.uniform(0.8, 1.2)
            self._reap()
            with contextlib.suppress(Conflict):
                self._lifeline.run(calls.tidy())

    def _rest(self, beat: calls.Beat) -> None:
        """Wait for the next beat, and look for the dead on the way."""
        if beat.overdue:
            self._reap()
        if beat.reap_in is not None and beat.reap_in < PERIOD:
            self._pause(beat.reap_in)
            self._reap()
            self._pause(PERIOD - beat.reap_in)
        else:
            self._pause(PERIOD)

    def _reap(self) -> None:
        try:
            self._give_back()
        except Conflict as error:  # the table is locked as a whole: at the next beat
            log.info("nothing reaped now", error=str(error))

    def _give_back(self) -> None:
        more = True
        while more and not self._stop.is_set():
            reaped = self._lifeline.run(calls.reap(limit=REAP_LIMIT, watcher=self.worker_id))
            back = Counter(job.worker_id for job in reaped if job.error is None)
            for worker_id, jobs in back.items():
                log.warning("dead worker's jobs given back", worker=f"w-{worker_id}", jobs=jobs)
            for job in reaped:
                if job.error is not None:
                    log.error("job not given back", job=job.job_id, error=job.error)
            more = len(reaped) == REAP_LIMIT
            if more:
                self._beat()

    def _pause(self, seconds: float) -> None:
        """Wait; tell of each notification on the way."""
        until = clock() + seconds
        while (left := until - clock()) > 0 and not self._stop.is_set():
            if self._lifeline.wait(left):
                self._hears.woken()
