"""Signals to all that a job started: its process group, and on Linux also what left the group.

A process leaves its group by setsid(). It is still found as a descendant while its ancestors
live, and afterwards by the name of the attempt in its environment, which children inherit. Not
found is a daemon that has cleared its environment before anybody looked.
"""

import contextlib
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, Signals
from threading import Lock

GONE_WITHIN = 2.0
"""Seconds in which what got SIGKILL is expected to be gone."""

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process as the kernel shows it. Its start tells it from a later one of the same number."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    started: str
    name: str

    def __str__(self) -> str:
        return f"{self.pid} ({self.name})"


class Group:
    """The process group that a child began (with a session of its own), and what left it.

    The leader is buried last: until then its number, which is that of the group, is nobody else's.
    Whoever attends the leader asks here whether it has ended, since Popen would bury it.
    """

    def __init__(self, leader: subprocess.Popen[bytes]) -> None:
        self._leader = leader
        self._strays: set[tuple[int, str]] = set()
        """What had left the group when a signal was sent: number and start."""
        self._lock = Lock()
        """So that nobody signals the group while its leader is buried."""
        self._buried = False
        self._lost = False
        """Whether somebody else has buried the leader, and how it ended is not known."""

    @property
    def code(self) -> int | None:
        """How the buried leader ended, as Popen has it; None if that is not known."""
        return None if self._lost else self._leader.returncode

    @property
    def ended(self) -> bool:
        """Whether the leader has ended."""
        if self._leader.returncode is not None:
            return True
        if not hasattr(os, "waitid"):  # as on macOS before Python 3.13: buried at once
            return self._leader.poll() is not None
        try:
            look = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self._leader.pid, look) is not None
        except ChildProcessError:  # SIGCHLD is ignored, or a handler has waited for any child
            self._lost = True  # which Popen would take for exit code 0
            return True

    def wait(self, seconds: float) -> bool:
        """Wait so long at most for the leader's end; whether it has ended."""
        until = time.monotonic() + seconds
        pause = 0.0005
        while not self.ended:
            left = until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(2 * pause, 0.05)
        return True

    def signal(self, number: Signals) -> None:
        """Send a signal to all of it."""
        processes = _processes()
        if not self._buried:
            self._strays |= {(p.pid, p.started) for p in _strays(processes, self._leader.pid)}
        for process in processes.values():
            if (process.pid, process.started) in self._strays:
                _kill(process.pid, number)
        self._signal_group(number)

    def kill(self) -> None:
        """Kill what is in the group itself. May be called from any thread."""
        self._signal_group(SIGKILL)

    def end(self, mark: str | None = None) -> list[Process]:
        """Kill all of it and wait until it is gone; gives what is left in spite of that.

        `mark`: what the environment of all that belongs to it has, such as `NAME=value`. Once the
        leader is buried, what is in the group has been killed, and is only waited for.
        """
        until = time.monotonic() + GONE_WITHIN
        pause = 0.001
        while True:
            self.signal(SIGKILL)
            left = self._left(mark)
            for process in () if self._buried else left:
                _kill(process.pid, SIGKILL)
            if not left or time.monotonic() >= until:
                return left
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def bury(self, seconds: float) -> bool:
        """Wait so long for the leader's end, then kill what it left; whether it has ended."""
        if not self.wait(seconds):
            return False
        self.kill()
        with self._lock:
            self._buried = True
            self._leader.wait()
        return True

    @property
    def inhabited(self) -> bool:
        """Whether anybody is in the group, whose leader is buried."""
        try:
            os.killpg(self._leader.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    def _signal_group(self, number: Signals) -> None:
        # ProcessLookupError: nobody is there. PermissionError: some run as others; the rest got it.
        with self._lock, contextlib.suppress(ProcessLookupError, PermissionError):
            if not self._buried:
                os.killpg(self._leader.pid, number)

    def _left(self, mark: str | None) -> list[Process]:
        alive = [process for process in _processes().values() if process.state not in "ZX"]
        return [
            process
            for process in alive
            if self._leader.pid in (process.group, process.session)
            or (process.pid, process.started) in self._strays
            or (mark is not None and _has(process.pid, mark))
        ]


def ending(code: int | None) -> str:
    """How a process ended, by the return code that Popen has for it."""
    if code is None:
        return (
            "ended, and how is not known: this worker ignores SIGCHLD, or a handler waited for it"
        )
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _kill(pid: int, number: Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _processes() -> dict[int, Process]:
    """All processes by number; none where the system does not show them as Linux does."""
    try:
        names = [entry.name for entry in os.scandir(PROC) if entry.name.isdigit()]
    except OSError:
        return {}
    found = (_read(name) for name in names)
    return {process.pid: process for process in found if process is not None}


def _read(name: str) -> Process | None:
    try:
        text = (PROC / name / "stat").read_text(errors="replace")
    except OSError:  # it has ended
        return None
    return parse_stat(text)


def parse_stat(text: str) -> Process:
    """Read /proc/PID/stat. The name stands in parentheses, and may hold blanks and parentheses."""
    head, _, tail = text.rpartition(")")
    pid, _, name = head.partition(" (")
    fields = tail.split()
    state, (parent, group, session) = fields[0], map(int, fields[1:4])
    return Process(int(pid), parent, group, session, state, started=fields[19], name=name)


def _strays(processes: dict[int, Process], leader: int) -> list[Process]:
    """Descendants of the leader, and members of their sessions, that are not in its group."""
    family = {leader}
    while True:
        found = {p.pid for p in processes.values() if p.parent in family or p.session in family}
        if found <= family:
            break
        family |= found
    return [p for p in processes.values() if p.pid in family and p.group != leader]


def _has(pid: int, mark: str) -> bool:
    try:
        environment = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    return mark.encode() in environment.split(b"\0")
