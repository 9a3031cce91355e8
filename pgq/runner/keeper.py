"""The guard of commands: ends their process groups when the worker itself is gone.

A command outlives a worker that was killed, and would run beside the job's next attempt. So one
small process of its own session holds the other end of a pipe from the worker; it learns which
process groups run, and when the pipe closes, however the worker ended, it kills them.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from threading import Lock

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

    @contextlib.contextmanager
    def watching(self, group: int) -> Iterator[None]:
        """Guard a process group while the body runs."""
        with self._lock:
            self._groups.add(group)
            self._tell(f"+{group}\n")
        try:
            yield
        finally:
            with self._lock:
                self._groups.discard(group)
                self._tell(f"-{group}\n")

    def _tell(self, line: str) -> None:
        try:
            os.write(_stdin(self._process), line.encode())
        except BrokenPipeError:  # somebody ended the guard: start another, tell it all
            self._process.wait()
            self._process = _start()
            known = "".join(f"+{group}\n" for group in self._groups)
            os.write(_stdin(self._process), known.encode())

    def close(self) -> None:
        """End the guard; no command may run any more."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )


def _stdin(process: subprocess.Popen[bytes]) -> int:
    assert process.stdin is not None
    return process.stdin.fileno()
