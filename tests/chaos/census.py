"""What a process holds, as the kernel tells (Linux)."""

from pathlib import Path

PROC = Path("/proc")


def memory(pid: int) -> tuple[int, int]:
    """Resident memory and the most it ever was, in kB."""
    lines = (PROC / str(pid) / "status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(fields["VmRSS"].split()[0]), int(fields["VmHWM"].split()[0])


def threads(pid: int) -> int:
    """Its threads, the main one included."""
    return len(list((PROC / str(pid) / "task").iterdir()))


def descriptors(pid: int) -> int:
    """Its open files, sockets and pipes."""
    return len(list((PROC / str(pid) / "fd").iterdir()))


def children(pid: int) -> int:
    """Its children and theirs, in whatever state."""
    parents: dict[int, list[int]] = {}
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything; state and parent come after it.
            words = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents.setdefault(int(words[1]), []).append(int(stat.parent.name))
    found, waiting = 0, [pid]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += len(below)
        waiting += below
    return found
