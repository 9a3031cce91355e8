"""A real terminal: a pane of a private tmux server, for what only a terminal does to programs."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.databases import PATIENCE


class Terminal:
    """A pane with a shell in it."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def open(self, *, cwd: Path) -> None:
        """Start the shell: bash without anybody's settings."""
        shell = "exec bash --noprofile --norc -i"
        self._tmux("new-session", "-d", "-x", "120", "-y", "40", "-c", str(cwd), shell)

    @property
    def pid(self) -> int:
        """The shell."""
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    def type(self, line: str) -> None:
        """Type a line and press Enter."""
        self._tmux("send-keys", "-l", line)
        self._tmux("send-keys", "Enter")

    def press(self, key: str) -> None:
        """Press a key, as tmux writes it: C-c."""
        self._tmux("send-keys", key)

    def shows(self, words: str) -> None:
        """Wait until these words are on the screen, or above it; lines are joined."""
        deadline = time.monotonic() + PATIENCE
        while words not in (text := self._tmux("capture-pane", "-p", "-J", "-S", "-")):
            assert time.monotonic() < deadline, f"{words!r} is not in {text}"
            time.sleep(0.02)

    def close(self) -> None:
        """Close the pane, as a person does who closes the window."""
        self._tmux("kill-pane")

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@contextmanager
def terminal(*, cwd: Path) -> Iterator[Terminal]:
    """A terminal while the block runs."""
    with tempfile.TemporaryDirectory(prefix="pgq-tmux-", dir="/tmp") as folder:
        socket = Path(folder, "socket")
        opened = Terminal(socket)
        opened.open(cwd=cwd)
        try:
            yield opened
        finally:
            ending = ["tmux", "-S", str(socket), "kill-server"]
            subprocess.run(ending, check=False, capture_output=True)
