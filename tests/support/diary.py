"""When each run of a job began and ended, in a file that all workers of a test write into.

The clock is the machine's monotonic one, the same in every process.
"""

import json
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a job."""

    job: int
    pid: int
    """The worker's process."""
    began: float
    ended: float | None
    """None: it did not come to its end, or not yet."""


@contextmanager
def noted(path: Path, job_id: int) -> Iterator[None]:
    """Note that a run of this job begins, and that it ends, however it ends."""
    run = uuid.uuid4().hex
    _write(path, run, job=job_id, pid=os.getpid(), began=time.monotonic())
    try:
        yield
    finally:
        _write(path, run, ended=time.monotonic())


def read(path: Path) -> list[Run]:
    """All runs so far, in the order in which they began."""
    runs: dict[str, dict[str, float]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        entry = json.loads(line)
        runs.setdefault(entry.pop("run"), {}).update(entry)
    return [
        Run(job=int(r["job"]), pid=int(r["pid"]), began=r["began"], ended=r.get("ended"))
        for r in runs.values()
    ]


def overlaps(runs: list[Run]) -> list[tuple[Run, Run]]:
    """Pairs of runs of one job of which the second began before the first had ended."""
    latest: dict[int, Run] = {}
    found = []
    for run in runs:
        before = latest.get(run.job)
        if before is not None and (before.ended is None or before.ended > run.began):
            found.append((before, run))
        latest[run.job] = run
    return found


def _write(path: Path, run: str, **entry: float) -> None:
    # One write to a file opened for appending is never mixed with another process's.
    with path.open("ab", buffering=0) as file:
        file.write(json.dumps({"run": run, **entry}).encode() + b"\n")
