"""Worker processes: started, frozen, killed, and asked to stop."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[3]
"""The checkout, from which `examples.shop` can be imported."""

PGQ = str(Path(sys.executable).with_name("pgq"))


def environment(**variables: str) -> dict[str, str]:
    """The environment of `pgq`: this one's, but for what would tell it or the shop otherwise."""
    foreign = ("PGQ_", "SHOP_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return kept | variables


class Worker:
    """One `pgq worker` of the shop, with its log in a file."""

    def __init__(self, log: Path, variables: Mapping[str, str]) -> None:
        self.log = log
        self.id: int | None = None
        """Its id in the database, once it has reported for work."""
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [PGQ, "worker", "--app", "examples.shop:app"],
                cwd=ROOT,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def __str__(self) -> str:
        return f"w-{self.id}" if self.id else f"the worker of process {self.pid}"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def freeze(self) -> None:
        """Stop it where it stands."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen worker go on."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL: it can do nothing more, not even say so."""
        self._process.kill()
        self._process.wait()

    def stop(self, *, seconds: float) -> int | None:
        """Ask it to end its running jobs and stop; gives its exit code, None if it goes on."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=seconds)
        return self.exit_code

    def last_words(self, lines: int = 15) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
