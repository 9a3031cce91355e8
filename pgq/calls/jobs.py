"""Calls that a worker makes about jobs: claim, finish, settle."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, assert_never

from pgq.calls import Call, Rows, nothing, scalar
from pgq.model import (
    Buried,
    Cancelled,
    ClaimedJob,
    Done,
    Failed,
    HandedBack,
    Snoozed,
    Verdict,
)


class Place(NamedTuple):
    """Where to start looking: a queue, a priority, and the last (time due, id) seen there."""

    queue: str
    priority: int
    at: datetime
    id: int


@dataclass(frozen=True, slots=True)
class Look:
    """What one claim found, and the database's time when it looked."""

    at: datetime
    jobs: list[ClaimedJob]


def claim(
    worker_id: int,
    *,
    queues: Sequence[str],
    limit: int,
    kinds: Sequence[str] | None,
    places: Sequence[Place] | None,
    turn: bool = False,
    singly: bool = False,
) -> Call[Look]:
    """Claim at most `limit` jobs: from the remembered places, or by a full look if None.

    `singly`: one by one, each that the database refuses put off.
    `turn`: if the places give nothing, a full look at the queues at which nobody else looks now.
    """
    params: dict[str, object] = {"worker_id": worker_id, "limit": limit, "kinds": kinds}
    params |= {"turn": turn, "singly": singly}
    if places is None:
        params |= {"queues": list(queues), "priorities": None, "times": None, "ids": None}
    else:
        params |= {
            "queues": [place.queue for place in places],
            "priorities": [place.priority for place in places],
            "times": [place.at for place in places],
            "ids": [place.id for place in places],
        }
    return Call("claim_jobs", params, _read_look)


def _read_look(rows: Rows) -> Look:
    make = ClaimedJob._make
    return Look(rows[0][0], [make(row[1:]) for row in rows[1:]])


def running(worker_id: int, *, queues: Sequence[str]) -> Call[list[ClaimedJob]]:
    """The jobs that run under this worker, with their leases."""
    params = {"worker_id": worker_id, "queues": list(queues)}
    return Call("list_held_jobs", params, lambda rows: [ClaimedJob._make(row) for row in rows])


def leases(worker_id: int, *, queues: Sequence[str]) -> Call[set[int]]:
    """The leases of the jobs that run under this worker."""
    params = {"worker_id": worker_id, "queues": list(queues)}
    return Call("list_leases", params, lambda rows: {lease for (lease,) in rows})


Finished = tuple[ClaimedJob, Done]
Settled = tuple[ClaimedJob, Failed | Buried | Snoozed | Cancelled | HandedBack]


def finish(worker_id: int, done: Sequence[Finished]) -> Call[list[int]]:
    """Mark jobs done; gives the ids whose lease was lost."""
    results: list[str | None] | None = [verdict.result for _, verdict in done]
    notes: list[str | None] | None = [verdict.note for _, verdict in done]
    if not any(results or ()):
        results = None
    if not any(notes or ()):
        notes = None
    params = _claims(worker_id, [job for job, _ in done]) | {"results": results, "notes": notes}
    return Call("finish_jobs", params, scalar)


def settle(worker_id: int, ended: Sequence[Settled]) -> Call[list[int]]:
    """End attempts that are not done; gives the ids whose lease was lost."""
    columns = [_settlement(verdict) for _, verdict in ended]
    params = _claims(worker_id, [job for job, _ in ended]) | {
        "outcomes": [column[0] for column in columns],
        "delays": [column[1] for column in columns],
        "errors": [column[2] for column in columns],
        "tracebacks": [column[3] for column in columns],
        "outputs": [column[4] for column in columns],
    }
    return Call("settle_jobs", params, scalar)


class Progress(NamedTuple):
    """What a handler said of its progress."""

    job: ClaimedJob
    text: str
    """A JSON object."""


def note_progress(news: Sequence[Progress]) -> Call[None]:
    """Write what handlers said of their progress."""
    params = {
        "ids": _integers([one.job.id for one in news]),
        "leases": _integers([one.job.lease for one in news]),
        "progress": [one.text for one in news],
    }
    return Call("note_progress", params, nothing)


def cancel_queries(job: ClaimedJob) -> Call[int]:
    """Cancel what this attempt's own connections run; gives how many."""
    return Call("cancel_queries", {"application_name": job.application_name}, scalar)


def _claims(worker_id: int, jobs: Sequence[ClaimedJob]) -> dict[str, object]:
    return {
        "worker_id": worker_id,
        "ids": _integers([job.id for job in jobs]),
        "leases": _integers([job.lease for job in jobs]),
        "attempts": _integers([job.attempts for job in jobs]),
    }


def _integers(values: list[int]) -> str:
    """An array of integers as PostgreSQL reads it: in a tenth of the time that the driver takes."""
    return "{" + ",".join(map(str, values)) + "}"


def _settlement(
    verdict: Verdict,
) -> tuple[str, timedelta | None, str | None, str | None, str | None]:
    match verdict:
        case Failed(error, traceback, delay, timed_out, output):
            return ("timed out" if timed_out else "failed"), delay, error, traceback, output
        case Buried(error, traceback, output):
            return "buried", None, error, traceback, output
        case Snoozed(delay):
            return "snoozed", delay, None, None, None
        case Cancelled(reason, output):
            return "cancelled", None, reason, None, output
        case HandedBack():
            return "handed back", None, None, None, None
        case Done():
            raise ValueError("a done job is finished, not settled")
        case _:
            assert_never(verdict)
