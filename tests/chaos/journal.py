"""What handlers note of themselves: a line as one begins, a line as it ends.

Each process appends to a file of its own, a line a write, so that a kill cannot tear one.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pgq
from tests.chaos.history import Execution, How

FOLDER = "CHAOS_FOLDER"
PROCESS = "CHAOS_PROCESS"
SUFFIX = ".journal"


class Stopped(Exception):
    """Raised by a handler in a thread that was asked to stop."""


_numbers = count()


@contextmanager
def noted(job: pgq.Job, *, thread: bool) -> Iterator[None]:
    """Note that a handler runs this job; and how it ended, if its process lives to see it."""
    number = next(_numbers)
    start = {"job": job.id, "attempt": job.attempt, "thread": thread}
    _append({"execution": number, "start": time.monotonic(), **start})
    how = How.STOPPED
    try:
        yield
        how = How.DONE
    except Stopped:
        raise
    except Exception:
        how = How.FAILED
        raise
    finally:
        _append({"execution": number, "end": time.monotonic(), "how": how})


def process() -> str:
    """The name that this worker process was given."""
    return os.environ[PROCESS]


def _append(line: dict[str, Any]) -> None:
    os.write(_descriptor(), f"{json.dumps(line)}\n".encode())


@cache
def _descriptor() -> int:
    path = Path(os.environ[FOLDER], process()).with_suffix(SUFFIX)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def read(folder: Path) -> list[Execution]:
    """The executions that the journals in a folder tell of."""
    executions = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        lines: dict[int, dict[str, Any]] = {}
        for text in path.read_text().splitlines():
            line = json.loads(text)
            lines.setdefault(line.pop("execution"), {}).update(line)
        executions += [
            Execution(
                process=path.stem,
                job=line["job"],
                attempt=line["attempt"],
                start=line["start"],
                end=line.get("end"),
                how=How(line["how"]) if "how" in line else None,
                thread=line["thread"],
            )
            for line in lines.values()
        ]
    return executions
