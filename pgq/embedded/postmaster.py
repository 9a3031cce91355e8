"""The running server: found by its process file, started, told to stop.

A process file alone proves nothing: after a crash or a reboot its number may belong to any
process, and after a power cut it may be empty. A server is running when the process it names is
one of our account's and was started for this data folder.
"""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from pgq.embedded import account
from pgq.embedded.account import Account
from pgq.embedded.layout import PORT, Layout
from pgq.errors import Refused

PROCESS_FILE = "postmaster.pid"


@dataclass(frozen=True, kw_only=True)
class Postmaster:
    """A running server's main process; `ready` once it has come up."""

    pid: int
    started_at: datetime
    ready: bool
    program: Path


def find(layout: Layout, owner: Account) -> Postmaster | None:
    """The running server of this data folder, if there is one."""
    try:
        words = (layout.data / PROCESS_FILE).read_text(errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    lines = re.match(r"(\d+)\n.*\n(\d+)\n", words)
    program = _program(int(lines[1]), layout.data, owner) if lines else None
    if lines is None or program is None:
        return None
    return Postmaster(
        pid=int(lines[1]),
        started_at=datetime.fromtimestamp(int(lines[2]), UTC),
        ready=words.rstrip().endswith("\nready"),
        program=program,
    )


def launch(
    layout: Layout, owner: Account, programs: Path, log: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start the server on its data folder. It outlives this process and its terminal."""
    settings = {
        # What makes the server private is given here, where ALTER SYSTEM cannot change it.
        "listen_addresses": "",
        "unix_socket_directories": f'"{layout.sockets}"',
        "unix_socket_permissions": "0700",
        "port": str(PORT),
        "hba_file": str(layout.access),
        "ident_file": str(layout.identities),
        # No collector: the file that it is given here, kept small by `logs`.
        "logging_collector": "off",
        # Without the errors of clients, who see them themselves, and so without job payloads.
        "log_min_messages": "log",
        "log_checkpoints": "off",
    }
    command: list[str | Path] = [programs / "postgres", "-D", layout.data]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    return account.spawn(owner, command, output=log)


def clear_stale(layout: Layout) -> None:
    """Remove what a server that was killed has left; to be called when `find` finds none.

    PostgreSQL does this itself unless the number was taken over by another process of the same
    account, or the file is empty. It is safe even if a child of the killed server lives on: the
    shared memory block of a data folder is found by the folder's inode, and start refuses then.
    """
    if _answers(layout.socket):
        raise Refused(
            f"a server answers at {layout.socket}, but its process cannot be seen from here (in "
            "another container?): stop it where it was started"
        )
    leftovers = (layout.data / PROCESS_FILE, layout.socket, Path(f"{layout.socket}.lock"))
    for path in leftovers:
        path.unlink(missing_ok=True)


def ask_to_stop(server: Postmaster) -> None:
    """Ask for a fast shutdown: clients are disconnected, everything committed is on disk."""
    with suppress(ProcessLookupError):
        os.kill(server.pid, signal.SIGINT)


def _program(pid: int, data: Path, owner: Account) -> Path | None:
    """The program that process `pid` runs, if it is a server of the account on this data."""
    command = _linux_command(pid, owner) if sys.platform == "linux" else _ps_command(pid)
    program, found, _ = command.partition(f" -D {data} ")
    return Path(program) if found and Path(program).name == "postgres" else None


def _linux_command(pid: int, owner: Account) -> str:
    """The command line of a process of the account; empty when there is none or it is a zombie."""
    process = Path("/proc", str(pid))
    try:
        if process.stat().st_uid != owner.uid:
            return ""
        return os.fsdecode((process / "cmdline").read_bytes()).replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _ps_command(pid: int) -> str:
    command = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def _answers(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(os.fsencode(address))
        except OSError:
            return False
    return True
