"""Two who end one job at the same time: whichever comes first, there is one outcome.

The first holds its transaction open, the second waits for it or passes by, and the table says what
the second is told and what the job ends as. ARCHITECTURE.md has the same table for people.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import psycopg
import pytest

from pgq.model import Cancelled, ClaimedJob, Failed
from tests.support import jobs
from tests.support.databases import wait_until_blocked
from tests.support.jobs import Connection


@dataclass(frozen=True)
class Subject:
    """A running job, the claim of its worker, and a session that is not in the race."""

    worker_id: int
    claim: ClaimedJob


Act: TypeAlias = Callable[[Connection, Subject], object]
LATE = Failed("timed out after 1s", timed_out=True)
STOPPED = Cancelled("killed by an operator (ended by SIGTERM)")


def settle(verdict: Failed | Cancelled) -> Act:
    return lambda conn, subject: told(jobs.settle(conn, subject.worker_id, verdict, subject.claim))


def told(lost: list[int]) -> str:
    return "lease lost" if lost else "applied"


def reap(conn: Connection, subject: Subject) -> str:
    """The worker is marked dead and its job given back, in the reaper's transaction."""
    jobs.die(conn, subject.worker_id)
    return jobs.reap(conn).get(subject.claim.id, "passed by")


ACTS: Mapping[str, Act] = {
    "finish": lambda conn, it: told(jobs.finish(conn, it.worker_id, it.claim)),
    "timeout": settle(LATE),
    "stop": settle(STOPPED),
    "reap": reap,
    "cancel": lambda conn, it: jobs.cancel(conn, it.claim.id)[0],
    "kill": lambda conn, it: jobs.kill(conn, it.claim.id)[0],
    "force": lambda conn, it: jobs.kill(conn, it.claim.id, force=True)[0],
    "requeue": lambda conn, it: jobs.requeue(conn, it.claim.id, force=True)[0],
}

# What comes first, what comes second, what the second is told, and what the job ends as. A job
# that runs still has its worker's verdict before it, as the last column says. A worker's second
# word on an attempt changes nothing; it is taken for the first one, sent again.
RACES = [
    ("finish", "cancel", "already done", "done"),
    ("finish", "kill", "already done", "done"),
    ("finish", "force", "already done", "done"),
    ("finish", "timeout", "applied", "done"),
    ("cancel", "finish", "applied", "done"),
    ("cancel", "timeout", "applied", "cancelled"),
    ("cancel", "kill", "requested", "running, then cancelled"),
    ("kill", "cancel", "requested", "running, then cancelled"),
    ("kill", "finish", "applied", "done"),
    ("kill", "timeout", "applied", "cancelled"),
    ("kill", "stop", "applied", "cancelled"),
    ("kill", "force", "cancelled", "cancelled"),
    ("kill", "reap", "passed by", "running, then cancelled"),
    ("kill", "requeue", "requeued", "pending"),
    ("force", "finish", "lease lost", "cancelled"),
    ("force", "timeout", "lease lost", "cancelled"),
    ("force", "stop", "lease lost", "cancelled"),
    ("force", "kill", "already cancelled", "cancelled"),
    ("force", "reap", "passed by", "cancelled"),
    ("timeout", "finish", "applied", "pending"),
    ("timeout", "cancel", "cancelled", "cancelled"),
    ("timeout", "kill", "cancelled", "cancelled"),
    ("timeout", "reap", "passed by", "pending"),
    ("stop", "kill", "already cancelled", "cancelled"),
    ("reap", "finish", "lease lost", "pending"),
    ("reap", "timeout", "lease lost", "pending"),
    ("reap", "cancel", "cancelled", "cancelled"),
    ("reap", "kill", "cancelled", "cancelled"),
    ("reap", "force", "cancelled", "cancelled"),
    ("requeue", "kill", "cancelled", "cancelled"),
]


@pytest.fixture
def sessions(shared: str) -> Iterator[tuple[Connection, Connection]]:
    """The session that acts first, whose transaction stays open; and the other one."""
    with psycopg.connect(shared) as first, psycopg.connect(shared, autocommit=True) as second:
        yield first, second
        first.rollback()


def last_word(conn: Connection, subject: Subject) -> str:
    """What the job ends as: one that runs still goes the way of its worker, or is reaped."""
    status: str = jobs.row(conn, subject.claim.id)["status"]
    if status != "running":
        return status
    if not jobs.reap(conn):
        jobs.settle(conn, subject.worker_id, LATE, subject.claim)
    return f"running, then {jobs.row(conn, subject.claim.id)['status']}"


@pytest.mark.parametrize(("before", "after", "answer", "end"), RACES)
def test_whoever_comes_first_the_job_has_one_ending(
    shared: str,
    sessions: tuple[Connection, Connection],
    before: str,
    after: str,
    answer: str,
    end: str,
) -> None:
    first, second = sessions
    worker_id = jobs.register(second)
    jobs.enqueue(second)
    subject = Subject(worker_id, jobs.claim_one(second, worker_id))
    ACTS[before](first, subject)

    with ThreadPoolExecutor(1) as thread:
        step = thread.submit(ACTS[after], second, subject)
        if answer != "passed by":
            wait_until_blocked(shared, second.info.backend_pid)
        else:
            step.result()
        first.commit()

    assert step.result() == answer
    assert last_word(second, subject) == end
    assert len(jobs.attempts(second, subject.claim.id)) <= 1
