"""One job as text: its fields, what it was given and gave back, and its history. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from pgq.admin.show import AttemptRow, JobDetail
from pgq.text import format_duration, safe_lines
from pgq_cli.render import cell, dump

LARGE = ("payload", "result", "last_error")
HEAD_LINES = 60
HEAD_CHARACTERS = 4000
"""So much of one value is shown to people: its beginning, or the end of an output."""


def as_json(job: JobDetail, history: Sequence[AttemptRow], *, indent: int | None) -> str:
    """Everything, as one JSON object; the attempts are under `history`."""
    whole = job._asdict() | {"history": [attempt._asdict() for attempt in history]}
    return dump(whole, indent=indent) + "\n"


def for_people(job: JobDetail, history: Sequence[AttemptRow]) -> str:
    """The fields that have a value, then the large ones indented, then the attempts."""
    return "\n".join([*_fields(job), *_large(job), *_attempts(history)]) + "\n"


def _fields(job: JobDetail) -> Iterator[str]:
    names = [name for name in job._fields if name not in LARGE]
    width = max(map(len, names))
    for name in names:
        value = _progress(job) if name == "progress" else getattr(job, name)
        if value is not None:
            yield f"{name:<{width}}  {cell(value)}"


def _progress(job: JobDetail) -> str | None:
    """How far a running job is, as `40% resizing`; of one that does not run it means little."""
    said = job.progress if job.status == "running" else None
    match said:
        case None:
            return None
        case {"fraction": int() | float() as fraction} if 0 <= fraction <= 1:
            return f"{fraction:.0%} {said.get('note') or ''}".rstrip()
        case _:
            return dump(said)


def _large(job: JobDetail) -> Iterator[str]:
    for name in LARGE:
        value: Any = getattr(job, name)
        if value is not None:
            yield ""
            yield name
            yield from _head(value if name == "last_error" else dump(value, indent=2))


def _attempts(history: Sequence[AttemptRow]) -> Iterator[str]:
    for attempt in history:
        yield ""
        yield _headline(attempt)
        yield from _head(attempt.error)
        if attempt.traceback:
            yield from _head(attempt.traceback)
        if attempt.output:
            yield "  output"
            yield from _end(attempt.output)


def _headline(attempt: AttemptRow) -> str:
    parts = [f"attempt {attempt.attempt} {cell(attempt.outcome)} at {cell(attempt.finished_at)}"]
    if attempt.started_at is not None:
        parts.append(f"after {format_duration(attempt.finished_at - attempt.started_at)}")
    if attempt.worker_id is not None:
        parts.append(f"on worker {attempt.worker_id}")
    return " ".join(parts)


def _head(text: str) -> Iterator[str]:
    """The beginning of a text, safe and indented, and how much more there is."""
    shown = text[:HEAD_CHARACTERS].rstrip("\n").split("\n")[:HEAD_LINES]
    for line in shown:
        yield f"  {safe_lines(line)}"
    left = len(text.rstrip("\n")) - len("\n".join(shown))
    if left > 0:
        yield f"  ... {left} characters more: --output json has all"


def _end(text: str) -> Iterator[str]:
    """The end of a text, safe and indented, after how much more there is."""
    whole = text.strip("\n")
    shown = whole[-HEAD_CHARACTERS:].lstrip("\n").split("\n")[-HEAD_LINES:]
    left = len(whole) - len("\n".join(shown))
    if left > 0:
        yield f"    ... {left} characters before: --output json has all"
    for line in shown:
        yield f"    {safe_lines(line)}"
