"""Signals to all that a job started: its process group, and on Linux also what left the group.

A process leaves its group by setsid(). It is still found as a descendant while its ancestors
live, and afterwards by the name of the attempt in its environment, which children inherit. Not
found is a daemon that has cleared its environment before anybody looked.
"""

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

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
    """The process group that a child began (with a session of its own), and what left it."""

    def __init__(self, leader: subprocess.Popen[bytes]) -> None:
        self._leader = leader
        self._strays: set[tuple[int, str]] = set()
        """What had left the group when a signal was sent: number and start."""

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to all of it; whether anybody was there, if only to be buried."""
        processes = _processes()
        if self._leader.returncode is None:  # once it is buried, its number may be another's
            self._strays |= {(p.pid, p.started) for p in _strays(processes, self._leader.pid)}
        for process in processes.values():
            if (process.pid, process.started) in self._strays:
                _kill(process.pid, number)
        return signal_group(self._leader.pid, number)

    def end(self, mark: str | None = None) -> list[Process]:
        """Kill all of it and wait until it is gone; gives what is left in spite of that.

        `mark`: what the environment of all that belongs to it has, such as `NAME=value`.
        """
        until = time.monotonic() + GONE_WITHIN
        pause = 0.001
        while True:
            self.signal(signal.SIGKILL)
            left = self._left(mark)
            for process in left:
                _kill(process.pid, signal.SIGKILL)
            if not left or time.monotonic() >= until:
                return left
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def _left(self, mark: str | None) -> list[Process]:
        alive = [process for process in _processes().values() if process.state not in "ZX"]
        return [
            process
            for process in alive
            if self._leader.pid in (process.group, process.session)
            or (process.pid, process.started) in self._strays
            or (mark is not None and _has(process.pid, mark))
        ]


def signal_group(leader: int, number: signal.Signals) -> bool:
    """Send a signal to a process group; false if nobody is in it."""
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # some of it runs as another user; the rest got it
        pass
    return True


def ending(code: int) -> str:
    """How a process ended, by the return code that Popen has for it."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _kill(pid: int, number: signal.Signals) -> None:
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
