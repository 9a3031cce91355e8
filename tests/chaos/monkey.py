"""The monkey: carries out the plan, and notes what it did and when."""

import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event

import psycopg

from tests.chaos.fleet import Fleet, Running
from tests.chaos.history import Event as Noted
from tests.chaos.history import Killed, Outage, Stopped, Terminated, Told
from tests.chaos.plan import Deed, Fault
from tests.support.cluster import Cluster

ROLES = ("pgq worker heartbeat", "pgq worker claim", "pgq worker finish", "chaos handler")

BACKENDS = """
    select a.pid, a.application_name, max(w.pid)
    from pg_catalog.pg_stat_activity as a
    left join pg_catalog.pg_locks as l
        on l.pid = a.pid and l.locktype = 'advisory' and l.objsubid = 1
    left join pgq.workers as w on w.lock_key = ((l.classid::bigint << 32) | l.objid::bigint)
    where a.application_name = any (%s::text[])
    group by a.pid, a.application_name
    order by a.pid
"""
"""Backends, with the process whose heartbeat they carry: they hold the lock that its row names."""


@dataclass(slots=True)
class Monkey:
    """Breaks things; every event is in `events`."""

    cluster: Cluster
    fleet: Fleet
    direct: str
    dice: random.Random
    events: list[Noted] = field(default_factory=list)
    _asleep: list[tuple[float, float, Running]] = field(default_factory=list)
    """Until when, since when, who."""

    def work(self, deeds: Sequence[Deed], over: Event) -> None:
        """Do all of it, unless it is over; whoever was stopped goes on in the end."""
        began = time.monotonic()
        for deed in deeds:
            if over.is_set():
                break
            self._rest(began + deed.at, over)
            self._do(deed)
        while self._asleep:
            self._rest(min(until for until, _, _ in self._asleep), over)

    def _rest(self, until: float, over: Event) -> None:
        """Wait, and wake those whose time has come on the way."""
        while not over.is_set():
            now = time.monotonic()
            self._wake(now)
            if now >= until:
                return
            wakes = [at for at, _, _ in self._asleep]
            over.wait(max(0.0, min([until, *wakes]) - now))
        self._wake(float("inf"))

    def _wake(self, now: float) -> None:
        for entry in list(self._asleep):
            until, since, running = entry
            if until <= now:
                self._asleep.remove(entry)
                running.send(signal.SIGCONT)
                running.stopped = False
                woken = time.monotonic()
                self.events.append(Stopped(at=since, until=woken, process=running.name))

    def _do(self, deed: Deed) -> None:
        match deed.fault:
            case Fault.KILL:
                self._signal(self._victim(lambda _: True), signal.SIGKILL)
            case Fault.TELL:
                self._signal(self._victim(_free), signal.SIGTERM)
            case Fault.PAUSE | Fault.FREEZE:
                self._stop(self._victim(_free), deed.seconds)
            case Fault.TERMINATE:
                self._terminate()
            case Fault.CRASH:
                self._crash(deed.seconds)

    def _victim(self, fits: Callable[[Running], bool]) -> Running | None:
        found = [running for running in self.fleet.running() if fits(running)]
        return self.dice.choice(found) if found else None

    def _signal(self, running: Running | None, number: signal.Signals) -> None:
        if running is None:
            return
        at = time.monotonic()
        if number is signal.SIGTERM:
            running.told = True
            self.events.append(Told(at=at, process=running.name))
        else:
            self.events.append(Killed(at=at, process=running.name))
        running.send(number)

    def _stop(self, running: Running | None, seconds: float) -> None:
        if running is None:
            return
        since = time.monotonic()
        running.stopped = True
        running.send(signal.SIGSTOP)
        self._asleep.append((since + seconds, since, running))

    def _terminate(self) -> None:
        """End a backend of a role drawn first, so that none is rarely chosen."""
        with psycopg.connect(self.direct, autocommit=True) as conn:
            backends = conn.execute(BACKENDS, [list(ROLES)]).fetchall()
            roles = sorted({role for _, role, _ in backends})
            if not roles:
                return
            drawn = self.dice.choice(roles)
            pid, role, beats = self.dice.choice([row for row in backends if row[1] == drawn])
            at = time.monotonic()
            conn.execute("select pg_catalog.pg_terminate_backend(%s)", [pid])
        names = {running.process.pid: running.name for running in self.fleet.running()}
        self.events.append(Terminated(at=at, role=role, beats=names.get(beats)))

    def _crash(self, seconds: float) -> None:
        """Crash the server, and wait until it can be reached the way the workers go."""
        at = time.monotonic()
        self.cluster.stop("immediate")
        time.sleep(seconds)
        self.cluster.start()
        while not _answers(self.fleet.dsn):
            time.sleep(0.05)
        self.events.append(Outage(at=at, until=time.monotonic()))


def _free(running: Running) -> bool:
    return not running.stopped and not running.told


def _answers(dsn: str) -> bool:
    try:
        with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as conn:
            conn.execute("select 1")
    except psycopg.Error:
        return False
    return True
