"""The guard of commands and child processes: ends their groups when the worker itself is gone.

They outlive a worker that was killed, and would run beside the job's next attempt. So one small
process of its own session holds the other end of a pipe from the worker; it learns which process
groups run, and when the pipe closes, however the worker ended, it kills them.
"""

import contextlib
import os
import subprocess
import sys
from threading import Lock

from pgq.runner import fork

# Runs alone, without importing pgq: it must start fast and need nothing.
_PROGRAM = """
import os, signal, sys
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
groups = set()
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
    """Holds the guard process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._groups: set[int] = set()
        self._process = _start()

    def watch(self, group: int) -> None:
        """Guard a process group from now on."""
        with self._lock:
            self._groups.add(group)
            self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """This group has ended."""
        with self._lock:
            self._groups.discard(group)
            self._tell(f"-{group}\n")

    def check(self) -> None:
        """Replace the guard if somebody has ended it."""
        with self._lock, contextlib.suppress(OSError):  # the next check tries again
            if self._process.poll() is not None:
                self._replace()

    def _tell(self, line: str) -> None:
        try:
            os.write(_stdin(self._process), line.encode())
        except BrokenPipeError:
            self._replace()

    def _replace(self) -> None:
        ended, self._process = self._process, _start()
        _let_go(ended)
        known = "".join(f"+{group}\n" for group in self._groups)
        os.write(_stdin(self._process), known.encode())

    def close(self) -> None:
        """End the guard, and what it still guards."""
        _let_go(self._process)


def _start() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
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
