"""A systemd of the test's own: a real manager of units, as any user has one beside the system's.

A user's manager starts only where the system was booted with systemd. In a mount namespace of its
own it sees a /run that says so. That needs root.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.databases import PATIENCE

_BOOT = """
set -e
for tree in "$1" "$1/systemd" "$1/unified"; do
    if [ -e "$tree/cgroup.procs" ]; then
        mkdir "$tree/$2"
        echo $$ >"$tree/$2/cgroup.procs"
    fi
done
mount -t tmpfs tmpfs /run/systemd
mkdir -p /run/systemd/system /run/systemd/inaccessible/dir
touch /run/systemd/inaccessible/reg
mknod /run/systemd/inaccessible/chr c 0 0
exec "$0" --user --log-target=console
"""
"""Begins in a control group of its own, and has what stands for what units must not see."""

_GROUPS = Path("/sys/fs/cgroup")

_PROGRAMS = ("/lib/systemd/systemd", "/usr/lib/systemd/systemd")


class Systemd:
    """A running manager."""

    def __init__(self, home: Path) -> None:
        self.units = home / "config" / "systemd" / "user"
        """Where unit files are put before `load`."""
        self.units.mkdir(parents=True)
        self._name = home.name
        self._runtime = home / "run"
        self._runtime.mkdir(mode=0o700)
        self._log = home / "systemd.log"
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(self._runtime),
            "XDG_CONFIG_HOME": str(home / "config"),
        }
        # Reached at start: nothing of the machine's is wanted.
        (self.units / "default.target").write_text("[Unit]\nDescription=nothing\n")
        program = next((program for program in _PROGRAMS if Path(program).exists()), "systemd")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "unshare",
                    "--mount",
                    "--propagation",
                    "private",
                    "sh",
                    "-c",
                    _BOOT,
                    program,
                    str(_GROUPS),
                    self._name,
                ],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def boot(self) -> None:
        """Return once it takes orders."""
        until = time.monotonic() + PATIENCE
        while not (self._runtime / "systemd" / "private").exists():
            if self._process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"systemd did not start: {self._log.read_text()}")
            time.sleep(0.02)

    def ctl(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run systemctl."""
        inside = ["nsenter", "--mount", f"--target={self._process.pid}"]
        return subprocess.run(
            [*inside, "systemctl", "--user", *words],
            env=self._environment, check=False, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip

    def property(self, unit: str, name: str) -> str:
        """What it says of a unit."""
        return self.ctl("show", unit, f"--property={name}", "--value").stdout.strip()

    def end(self) -> None:
        """End it, and all that it started."""
        if self._process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.ctl("exit")
                self._process.wait(timeout=PATIENCE)
        self._process.kill()
        self._process.wait()
        for top in (*_GROUPS.glob(self._name), *_GROUPS.glob(f"*/{self._name}")):
            for group in sorted((top, *top.rglob("*/")), reverse=True):
                group.rmdir()


@contextmanager
def booted() -> Iterator[Systemd]:
    """A manager, for the block."""
    home = Path(tempfile.mkdtemp(prefix="pgq-systemd-"))
    try:
        manager = Systemd(home)
        try:
            manager.boot()
            yield manager
        finally:
            manager.end()
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":  # whether one can be had on this machine
    try:
        with booted():
            pass
    except (AssertionError, OSError) as error:
        sys.exit(f"no systemd: {error}")
