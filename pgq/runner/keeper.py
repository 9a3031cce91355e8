"""The guard of commands and child processes: ends their groups when the worker itself is gone.

They outlive a worker that was killed, and would run beside the job's next attempt. So one small
process of its own session holds the other end of a pipe from the worker; it learns which process
groups run, and when the pipe closes, however the worker ended, it kills them.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable
from threading import Lock

from pgq.runner import fork

# Runs alone, without importing pgq: it must start fast and need nothing.
_PROGRAM = """
import os, signal, sys
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
groups = set(map(int, sys.argv[1:]))
for line in sys.stdin:
    sign, group = line[0], int(line[1:])
    (groups.add if sign == "+" else groups.discard)(group)
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


class Keeper:
    """Holds the guard process. Its methods may be called from any thread, and wait for nobody.

    A guard that has ended, or that does not read what it is told, is replaced.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._groups: set[int] = set()
        self._closed = False
        self._process = _start(self._groups)

    def watch(self, group: int) -> None:
        """Guard a process group from now on; OSError if nobody can."""
        with self._lock:
            if self._closed:
                raise OSError("the worker ends")
            self._groups.add(group)
            try:
                self._tell(f"+{group}\n")
            except OSError:
                self._groups.discard(group)
                raise

    def forget(self, group: int) -> None:
        """This group has ended. Never raises."""
        with self._lock, contextlib.suppress(OSError):  # then `check` makes it good
            self._groups.discard(group)
            if not self._closed:
                self._tell(f"-{group}\n")

    def check(self) -> None:
        """Replace the guard if it has ended. Never raises."""
        with self._lock, contextlib.suppress(OSError):  # the next check tries again
            if not self._closed and self._process.poll() is not None:
                self._replace()

    def _tell(self, line: str) -> None:
        try:
            os.write(_stdin(self._process), line.encode())
        except OSError:  # it has ended, or the pipe is full
            self._replace()

    def _replace(self) -> None:
        # Killed before its pipe is closed: it would end what still runs. And before anything can
        # fail: what it knows is out of date.
        self._process.kill()
        ended, self._process = self._process, _start(self._groups)
        _let_go(ended)

    def close(self) -> None:
        """End the guard, and what it still guards."""
        with self._lock:
            if not self._closed:
                self._closed = True
                _let_go(self._process)


def _start(groups: Iterable[int]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", _PROGRAM, *map(str, groups)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    # A guard that stands still must not make the worker stand still.
    os.set_blocking(_stdin(process), False)
    # A forked child of a handler would keep the pipe open after the worker's death.
    fork.own(_stdin(process))
    return process


def _let_go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    fork.disown(process.stdin.fileno())
    process.stdin.close()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _stdin(process: subprocess.Popen[bytes]) -> int:
    assert process.stdin is not None
    return process.stdin.fileno()
