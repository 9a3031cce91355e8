"""Workers for tests: a drain in this process, and `pgq worker` as a process of its own.

A worker's process is watched through its log, which tells when to go on: nothing here sleeps.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pgq
from pgq import worker
from tests.support.databases import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(sys.executable).with_name("pgq"))

Line: TypeAlias = dict[str, Any]
"""One line of a worker's log: time, level, event, and its fields."""


def drain(dsn: str, app: pgq.App | None = None, **options: Any) -> None:
    """Work in this process until nothing is due."""
    assert run(worker.Options(dsn=dsn, app=app, drain=True, **options)) == 0


def run(options: worker.Options) -> int:
    """Run a worker in this process; gives its exit code, not 0 if it must be told to end."""
    late = threading.Timer(PATIENCE, tell_self, [signal.SIGTERM, signal.SIGHUP])
    late.start()
    try:
        return worker.run(options)
    finally:
        late.cancel()
        late.join()


def tell_self(*numbers: signal.Signals) -> None:
    """Send signals, all different ones, to this process, in which a worker runs."""
    for number in numbers:
        os.kill(os.getpid(), number)


class WorkerProcess:
    """A running `pgq worker`, and what it has logged so far."""

    def __init__(self, dsn: str, *arguments: str, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [PROGRAM, "--dsn", dsn, "worker", "--log-format", "json", *arguments],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._lines: list[Line] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as written:
            for text in written:
                with self._changed:
                    self._lines.append(_parsed(text))
                    self._changed.notify_all()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def id(self) -> int:
        """The worker's id, once it has started."""
        return int(self.seen("worker started")["worker"].removeprefix("w-"))

    def log(self, event: str | None = None) -> list[Line]:
        """The lines so far, or those of one event."""
        with self._changed:
            return [line for line in self._lines if event in (None, line["event"])]

    def said(self, event: str, **fields: Any) -> int:
        """How often it has logged this event with these fields so far."""
        return sum(line.items() >= fields.items() for line in self.log(event))

    def seen(self, event: str, *, times: int = 1, **fields: Any) -> Line:
        """Wait until it has logged this event with these fields, so often; gives that line."""

        def found() -> Line | None:
            lines = (line for line in self._lines if line["event"].startswith(event))
            matching = (line for line in lines if line.items() >= fields.items())
            return next(itertools.islice(matching, times - 1, None), None)

        with self._changed:
            line = self._changed.wait_for(found, timeout=PATIENCE)
        assert line is not None, f"no {event!r} with {fields} in {self.log()}"
        return line

    @property
    def cpu_seconds(self) -> float:
        """How long it has kept a processor busy so far, by itself."""
        # After the command's name, which may hold anything, the 12th and 13th field.
        stat = Path(f"/proc/{self.pid}/stat").read_text()
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def send_group(self, number: signal.Signals) -> None:
        """Send its whole process group a signal, as a terminal or an init system does."""
        os.killpg(self.pid, number)

    def ended(self) -> int:
        """Wait for its end; gives the exit code."""
        code = self._process.wait(timeout=PATIENCE)
        self._reader.join()
        return code

    def close(self) -> None:
        """Make sure that it is gone."""
        self._process.kill()
        self._process.wait()
        self._reader.join()


class Workers:
    """Starts workers that are gone when the test ends."""

    def __init__(self, dsn: str, environment: dict[str, str]) -> None:
        self.dsn = dsn
        self._environment = environment
        self._started: list[WorkerProcess] = []

    def start(self, *arguments: str, dsn: str | None = None) -> WorkerProcess:
        """Start `pgq worker` with these arguments, without waiting for anything."""
        started = WorkerProcess(dsn or self.dsn, *arguments, environment=self._environment)
        self._started.append(started)
        return started

    def hire(self, *arguments: str, dsn: str | None = None) -> WorkerProcess:
        """Start `pgq worker`, and return once it works."""
        started = self.start(*arguments, dsn=dsn)
        started.seen("worker started")
        return started

    def close(self) -> None:
        for started in self._started:
            started.close()


@contextmanager
def starting(dsn: str, environment: dict[str, str]) -> Iterator[Workers]:
    """A way to start workers in the block; what is left of them ends with it."""
    workers = Workers(dsn, environment)
    try:
        yield workers
    finally:
        workers.close()


def appears(path: Path) -> Path:
    """Wait for a file that a handler makes."""
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} did not appear"
        time.sleep(0.005)
    return path


def run_worker(*arguments: str, dsn: str) -> subprocess.CompletedProcess[str]:
    """Run `pgq worker` to its end, as a person would."""
    command: Sequence[str] = [PROGRAM, "--dsn", dsn, "worker", *arguments]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE
    )


def _parsed(text: str) -> Line:
    """A line of the log; what is no JSON (a traceback) is an event of its own."""
    try:
        line: Line = json.loads(text)
    except ValueError:
        line = {"event": text.rstrip(), "level": "stray"}
    return line
