"""Every pair of status and verb against the database: what the transition table says, no more."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias, assert_never

import pytest

from pgq.model import (
    ENDS_CANCELLED,
    TRANSITIONS,
    Buried,
    Cancelled,
    ClaimedJob,
    Failed,
    HandedBack,
    Snoozed,
    Status,
    Verb,
)
from tests.support import jobs
from tests.support.jobs import Connection, Row, Settlement

LAST_ATTEMPT = {Verb.FAIL_LAST, Verb.REAP_LAST}
RECORDED = {
    Verb.FAIL, Verb.FAIL_LAST, Verb.BURY, Verb.STOP, Verb.REAP, Verb.REAP_LAST, Verb.FORCE_KILL,
    Verb.FORCE_REQUEUE,
}  # fmt: skip
WISHES = {Verb.CANCEL, Verb.KILL, Verb.FORCE_KILL}
LEGAL = sorted(TRANSITIONS)
ILLEGAL = sorted(set(product(Status, Verb)) - TRANSITIONS.keys())


@dataclass(frozen=True)
class Subject:
    """A job, and the claim that its worker has or once had on it."""

    worker_id: int
    claim: ClaimedJob


Action: TypeAlias = Callable[[Connection, Subject], object]


def job_in(conn: Connection, status: Status, verb: Verb) -> Subject:
    """Bring a job into a status, by legal moves only."""
    worker_id = jobs.register(conn)
    jobs.enqueue(conn, max_attempts=1 if verb in LAST_ATTEMPT else 3)
    job = jobs.claim_one(conn, worker_id)
    match status:
        case Status.PENDING:
            jobs.settle(conn, worker_id, HandedBack(), job)
        case Status.RUNNING:
            pass
        case Status.DONE:
            jobs.finish(conn, worker_id, job)
        case Status.FAILED:
            jobs.settle(conn, worker_id, Buried("no use"), job)
        case Status.CANCELLED:
            jobs.settle(conn, worker_id, Cancelled("no need"), job)
        case _:
            assert_never(status)
    return Subject(worker_id, job)


def settled(verdict: Settlement) -> Action:
    return lambda conn, subject: jobs.settle(conn, subject.worker_id, verdict, subject.claim)


def reaped(conn: Connection, subject: Subject) -> None:
    jobs.die(conn, subject.worker_id)
    jobs.reap(conn)


ACTIONS: Mapping[Verb, Action] = {
    Verb.CLAIM: lambda conn, subject: jobs.claim(conn, subject.worker_id),
    Verb.FINISH: lambda conn, subject: jobs.finish(conn, subject.worker_id, subject.claim),
    Verb.FAIL: settled(Failed("no luck")),
    Verb.FAIL_LAST: settled(Failed("no luck")),
    Verb.BURY: settled(Buried("no use")),
    Verb.SNOOZE: settled(Snoozed(jobs.LONG_SILENCE)),
    Verb.HAND_BACK: settled(HandedBack()),
    Verb.STOP: settled(Cancelled("no need")),
    Verb.REAP: reaped,
    Verb.REAP_LAST: reaped,
    Verb.CANCEL: lambda conn, subject: jobs.cancel(conn, subject.claim.id),
    Verb.KILL: lambda conn, subject: jobs.kill(conn, subject.claim.id),
    Verb.FORCE_KILL: lambda conn, subject: jobs.kill(conn, subject.claim.id, force=True),
    Verb.REQUEUE: lambda conn, subject: jobs.requeue(conn, subject.claim.id),
    Verb.FORCE_REQUEUE: lambda conn, subject: jobs.requeue(conn, subject.claim.id, force=True),
}


def everything(conn: Connection, subject: Subject) -> list[Row]:
    """The job's row with its place in the table, which any update changes, and its attempts."""
    row = jobs.rows(conn, "select ctid::text, * from pgq.jobs where id = %s", subject.claim.id)
    return row + jobs.attempts(conn, subject.claim.id)


def named(pairs: list[tuple[Status, Verb]]) -> pytest.MarkDecorator:
    names = [f"{status}-{verb}".replace(" ", "-") for status, verb in pairs]
    return pytest.mark.parametrize(("status", "verb"), pairs, ids=names)


@named(LEGAL)
def test_a_legal_verb_lands(conn: Connection, status: Status, verb: Verb) -> None:
    subject = job_in(conn, status, verb)
    recorded = len(jobs.attempts(conn, subject.claim.id))

    ACTIONS[verb](conn, subject)

    row = jobs.row(conn, subject.claim.id)
    assert row["status"] == TRANSITIONS[status, verb]
    assert (row["cancel_requested_at"] is not None) == (verb in WISHES)
    assert (row["kill_requested_at"] is not None) == (verb in WISHES - {Verb.CANCEL})
    ended = status is Status.RUNNING and verb in RECORDED
    assert len(jobs.attempts(conn, subject.claim.id)) == recorded + ended


@named(ILLEGAL)
def test_an_illegal_verb_changes_nothing(conn: Connection, status: Status, verb: Verb) -> None:
    subject = job_in(conn, status, verb)
    before = everything(conn, subject)

    ACTIONS[verb](conn, subject)

    assert everything(conn, subject) == before


@pytest.mark.parametrize("wish", [Verb.CANCEL, Verb.KILL])
@named([pair for pair in LEGAL if pair[0] is Status.RUNNING])
def test_a_running_job_that_is_to_end_runs_no_more(
    conn: Connection, status: Status, verb: Verb, wish: Verb
) -> None:
    subject = job_in(conn, status, verb)
    ACTIONS[wish](conn, subject)

    ACTIONS[verb](conn, subject)

    expected = Status.CANCELLED if verb in ENDS_CANCELLED else TRANSITIONS[status, verb]
    assert jobs.row(conn, subject.claim.id)["status"] == expected


def test_the_table_leaves_no_ending_without_a_way_back() -> None:
    for status in (Status.DONE, Status.FAILED, Status.CANCELLED):
        assert [verb for verb in Verb if (status, verb) in TRANSITIONS] == [
            Verb.REQUEUE,
            Verb.FORCE_REQUEUE,
        ]
