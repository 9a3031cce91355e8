"""A stand-in that beats for a worker whose interpreter does not answer.

Code in C that does not let other threads run (a regular expression without end, a sum over a huge
range) stops the heartbeat too, although the worker is alive and its job goes on. So each worker has
a small process beside it that hears a pulse every second. When the pulse stops while the worker
neither ended nor is stopped, the stand-in beats for it, and says what is wrong in its row. A worker
that does not answer for a quarter of an hour is ended: its jobs would be stuck for ever.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pgq import db
from pgq.calls import workers as calls
from pgq.errors import PgqError
from pgq.runner import fork
from pgq.runner.interrupt import clock
from pgq.worker import log

PULSE = 1.0
QUIET = 4.0
"""Seconds without a pulse after which the stand-in beats; the last beat is at most 2 s older."""

LATE = 2.0
"""Seconds by which the pulse comes too late before it is said."""

PERIOD = 2.0
PATIENCE = 900.0
"""Seconds after which a worker that does not answer is ended."""

# Waits alone, without importing pgq: it must be small. What it hears, first of all the DSN, comes
# through the pipe, since arguments are for all to see.
_PROGRAM = f"""
import json, os, select, signal, sys
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
heard = pulse = b""
while os.getppid() == int(sys.argv[1]):
    if select.select([0], [], [], {QUIET})[0]:
        chunk = os.read(0, 65536)
        if not chunk:
            break
        *lines, heard = (heard + chunk).split(b"\\n")
        pulse = lines[-1] if lines else pulse
    elif pulse:
        told = json.loads(pulse)
        sys.path[:] = told.pop("path")
        from pgq.worker.standin import stand_in
        stand_in(told, int(sys.argv[1]))
"""


class State(NamedTuple):
    """What a beat for a worker says."""

    worker_id: int
    lock_key: int | None
    draining: bool


class Pulse:
    """Keeps a stand-in, and shows it that this interpreter runs."""

    def __init__(self, dsn: str, state: Callable[[], State]) -> None:
        self._dsn = dsn
        self._state = state
        self._stop = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="pgq-pulse", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and the stand-in with it."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._let_go()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._beat()
            except Exception as error:  # noqa: BLE001 - without a pulse the worker would be ended
                log.warning("the stand-in ended: another one is started", error=repr(error))
                self._let_go()
            due = clock() + PULSE
            self._stop.wait(PULSE)
            late = clock() - due
            if late > LATE:
                log.warning(
                    "heartbeat was late: the process was suspended, or code that does not yield "
                    "held the interpreter",
                    seconds=round(late, 1),
                )

    def _beat(self) -> None:
        if self._process is None:
            self._process = _start()
        added: list[object] = [*sys.path]  # handlers add what not
        path = [place for place in added if isinstance(place, str)]
        told = {"dsn": self._dsn, "path": path, **self._state()._asdict()}
        with contextlib.suppress(BlockingIOError):  # it has pulses enough to read
            os.write(_pipe(self._process), json.dumps(told).encode() + b"\n")

    def _let_go(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        fork.disown(_pipe(process))
        process.stdin.close()  # type: ignore[union-attr]
        try:
            process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _start() -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", _PROGRAM, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    os.set_blocking(_pipe(process), False)
    fork.own(_pipe(process))
    return process


def _pipe(process: "subprocess.Popen[bytes]") -> int:
    assert process.stdin is not None
    return process.stdin.fileno()


def stand_in(told: dict[str, Any], parent: int) -> None:
    """In the stand-in's process: beat for the worker until its pulse comes again, or it is gone."""
    dsn = told.pop("dsn")
    state = State(**told)
    # On a clock that stands still while the host is suspended: only time in which the worker could
    # have answered counts.
    since = time.monotonic() - QUIET
    while os.getppid() == parent and not _stopped(parent):
        silent = time.monotonic() - since
        if silent > PATIENCE:
            sys.stderr.write(
                f"pgq: w-{state.worker_id} has not answered for {silent:.0f} s: it is ended\n"
            )
            os.kill(parent, signal.SIGKILL)
            return
        with contextlib.suppress(PgqError):
            _beat_for(dsn, state, silent)
        if select.select([0], [], [], PERIOD)[0]:
            return


def _beat_for(dsn: str, state: State, silent: float) -> None:
    trouble = f"code that does not yield has held the interpreter for {silent:.0f} s"
    with contextlib.closing(
        db.connect(dsn, application_name="pgq worker stand-in", connect_timeout=2)
    ) as conn:
        beat = calls.heartbeat(
            state.worker_id, lock_key=state.lock_key, draining=state.draining, trouble=trouble
        )
        db.run(conn, beat)


def _stopped(pid: int) -> bool:
    """Whether this process is stopped (SIGSTOP, a debugger): then it is silent with good reason."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # no /proc here
        asked = ["ps", "-o", "state=", "-p", str(pid)]
        words = subprocess.run(asked, check=False, capture_output=True, text=True).stdout.split()
    return bool(words) and words[0][0] in "Tt"
