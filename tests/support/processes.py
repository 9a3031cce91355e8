"""Python in a process of its own, for what a running interpreter cannot show; and who is whose
child, by /proc."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path


def run_python(code: str, *, first_on_path: Path | None = None, cwd: Path | None = None) -> str:
    """What the code prints; its standard error is shown when it fails."""
    path = {} if first_on_path is None else {"PYTHONPATH": str(first_on_path)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **path},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def children(pid: int) -> list[int]:
    """The processes that this one has started and that have not ended."""
    everybody = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return sorted(other for other in everybody if _facts(other)[:1] == [str(pid)])


def descendants(pid: int) -> list[int]:
    """Its children, their children, and so on."""
    near = children(pid)
    return near + [far for child in near for far in descendants(child)]


def guard_of(worker: int) -> int | None:
    """The process that guards the commands and child processes of this worker."""
    for child in children(worker):
        with suppress(FileNotFoundError, ProcessLookupError):
            if b"killpg" in Path(f"/proc/{child}/cmdline").read_bytes():
                return child
    return None


def processor_time(pid: int) -> float:
    """Seconds of a processor that this process has used."""
    facts = _facts(pid)
    return (int(facts[10]) + int(facts[11])) / os.sysconf("SC_CLK_TCK")


def _facts(pid: int) -> list[str]:
    """What /proc/PID/stat says from the parent on; nothing of one that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [] if fields[0] == "Z" else fields[1:]
