"""Loading a file of jobs: a line a job, checked whole before any of it is enqueued.

Checked jobs wait in a temporary file, so that a million of them take little memory, standard input
can be loaded, and a bad last line leaves nothing behind in the database, not even dead rows.
"""

import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import IO, Any

import psycopg

from pgq import db
from pgq.admin.lines import Lines, parse_line
from pgq.calls import queues as calls
from pgq.client import BATCH, check
from pgq.errors import UsageError
from pgq.model import NewJob

NAMED = 20
"""So many bad lines are named; the others are counted."""

BATCH_CHARACTERS = 4_000_000
"""A statement is sent when its payloads are this long together, however few."""

Advance = Callable[[int], None]


class BadLines(UsageError):
    """Lines that are no jobs; nothing was enqueued. `named` are the first, each in one line."""

    def __init__(self, *, named: list[str], bad: int, lines: int) -> None:
        self.named, self.bad, self.lines = named, bad, lines
        super().__init__(
            f"{bad} of {lines} lines {'is no job' if bad == 1 else 'are no jobs'}: nothing was "
            "enqueued; correct the file and load it again"
        )


@dataclass(frozen=True, slots=True)
class Loaded:
    """How many jobs were enqueued, and how many had a unique key that is taken."""

    enqueued: int
    duplicates: int


@dataclass
class Batch:
    """Jobs without their payloads, whose JSON texts are apart; and the lines they came from."""

    lines: list[int] = field(default_factory=list)
    jobs: list[NewJob] = field(default_factory=list)
    payloads: list[str] = field(default_factory=list)
    characters: int = 0

    @property
    def full(self) -> bool:
        return len(self.jobs) >= BATCH or self.characters >= BATCH_CHARACTERS

    def add(self, line: int, job: NewJob, payload: str) -> None:
        self.lines.append(line)
        self.jobs.append(replace(job, payload=None))
        self.payloads.append(payload)
        self.characters += len(payload)


class Checked:
    """Jobs that may be enqueued, batch by batch in a temporary file."""

    def __init__(self, spool: IO[bytes]) -> None:
        self.jobs = 0
        self._spool = spool

    def add(self, batch: Batch) -> None:
        pickle.dump(batch, self._spool, protocol=pickle.HIGHEST_PROTOCOL)
        self.jobs += len(batch.jobs)

    def batches(self) -> Iterator[Batch]:
        self._spool.seek(0)
        seen = 0
        while seen < self.jobs:
            batch: Batch = pickle.load(self._spool)  # the spool has no name: nobody else wrote it
            seen += len(batch.jobs)
            yield batch


@contextmanager
def spool() -> Iterator[Checked]:
    """A place for checked jobs, gone with the block."""
    with tempfile.TemporaryFile() as file:
        yield Checked(file)


def read(
    conn: psycopg.Connection[Any],
    stream: IO[bytes],
    ready: Checked,
    *,
    defaults: Mapping[str, Any],
    advance: Advance,
) -> None:
    """Check every line and keep its job in `ready`; BadLines names those that are no jobs.

    `defaults` are fields of NewJob for what a line leaves out. A line without a kind, where there
    is no default either, takes its payload's `type`. `advance` is told of bytes read.
    """
    limit = db.run(conn, calls.payload_limit())
    # Every character of a payload may be written as \uXXXX, and the other fields are short.
    lines = Lines(stream, longest=limit * 6 + 65_536)
    named: list[str] = []
    bad = 0
    batch = Batch()
    for line in lines:
        try:
            batch.add(lines.number, *_checked(line, lines, defaults=defaults, limit=limit))
        except UsageError as error:
            bad += 1
            if bad <= NAMED:
                named.append(f"line {lines.number}: {error}")
        if batch.full:
            advance(lines.taken())
            if not bad:
                ready.add(batch)
            batch = Batch()
    advance(lines.taken())
    if bad:
        raise BadLines(named=named, bad=bad, lines=lines.number)
    ready.add(batch)


def _checked(
    line: bytes, lines: Lines, *, defaults: Mapping[str, Any], limit: int
) -> tuple[NewJob, str]:
    """The job of a line and its payload's JSON text."""
    if lines.is_cut(line):
        raise UsageError("longer than any job can be")
    job = parse_line(line, defaults)
    payload = check(job)
    if len(payload) * 4 > limit and (size := len(payload.encode())) > limit:
        raise UsageError(f"payload: {size} bytes, and this database allows {limit}")
    return job, payload


def send(conn: psycopg.Connection[Any], ready: Checked, *, advance: Advance) -> Loaded:
    """Enqueue checked jobs in one transaction; `advance` is told of jobs sent."""
    duplicates = 0
    with db.driver_errors(), conn.transaction():
        for batch in ready.batches():
            try:
                answers = db.run(conn, calls.enqueue_many(batch.jobs, batch.payloads))
            except UsageError as error:
                raise UsageError(
                    f"lines {batch.lines[0]} to {batch.lines[-1]}: {error}: nothing was enqueued"
                ) from None
            duplicates += sum(answer.duplicate for answer in answers)
            advance(len(answers))
    return Loaded(ready.jobs - duplicates, duplicates)
