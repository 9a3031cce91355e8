"""A supervisor of `pgq worker` processes: starts again what ended, as systemd would.

It names every process, `SLOT-NUMBER`, and keeps when each began and ended.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread

from tests.chaos import app, journal
from tests.chaos.history import Process
from tests.support.workers import PROGRAM, ROOT

AGAIN = 0.2
"""Seconds between an end and the next start."""

PATIENCE = 60.0
"""Seconds for the workers to end once they are told."""

LOG = ".log"


@dataclass(slots=True)
class Running:
    """A worker process that was started."""

    name: str
    process: "subprocess.Popen[bytes]"
    began: float
    ended: float | None = None
    stopped: bool = False
    told: bool = False

    @property
    def alive(self) -> bool:
        return self.ended is None

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; one that has ended does not hear it."""
        self.process.send_signal(number)


@dataclass(slots=True)
class Fleet:
    """So many workers, always."""

    dsn: str
    direct: str
    """The server's own address, for handlers."""
    folder: Path
    arguments: Sequence[str]
    _all: list[Running] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _over: Event = field(default_factory=Event)

    def running(self) -> list[Running]:
        """The processes that live, in order of their names."""
        with self._lock:
            alive = [found for found in self._all if found.alive]
        return sorted(alive, key=lambda found: found.name)

    def processes(self) -> list[Process]:
        """All processes so far, without what only their logs tell."""
        with self._lock:
            return [
                Process(
                    name=found.name,
                    pid=found.process.pid,
                    began=found.began,
                    ended=found.ended,
                    exit_code=found.process.returncode,
                )
                for found in self._all
            ]

    def keep(self, slot: int) -> None:
        """Keep one worker running, until the fleet is told to end."""
        number = 0
        while not self._over.is_set():
            number += 1
            running = self._start(f"{slot}-{number}")
            running.process.wait()
            running.ended = time.monotonic()
            self._over.wait(AGAIN)

    def _start(self, name: str) -> Running:
        own = {journal.FOLDER: str(self.folder), journal.PROCESS: name, app.DSN: self.direct}
        own["PYTHONPATH"] = str(ROOT)  # the workers are of the tree that judges them
        environment = {key: value for key, value in os.environ.items() if key[:2] != "PG"}
        began = time.monotonic()
        with Path(self.folder, name).with_suffix(LOG).open("wb") as log:
            process = subprocess.Popen(
                [PROGRAM, "--dsn", self.dsn, "worker", "--log-format", "json", *self.arguments],
                cwd=ROOT,
                env=environment | own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        running = Running(name, process, began)
        with self._lock:
            self._all.append(running)
        return running

    def end(self) -> list[Running]:
        """Start none again."""
        self._over.set()
        return self.running()

    def close(self, threads: Sequence[Thread]) -> None:
        """Kill whatever is left."""
        for running in self.end():
            running.process.kill()
        for thread in threads:
            thread.join()


@contextmanager
def sailing(fleet: Fleet, workers: int) -> Iterator[Fleet]:
    """So many workers in the block; none is left after it."""
    threads = [Thread(target=fleet.keep, args=(slot + 1,)) for slot in range(workers)]
    for thread in threads:
        thread.start()
    try:
        yield fleet
    finally:
        fleet.close(threads)
