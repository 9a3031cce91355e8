"""The transition table, and the values that are sent to the database."""

from itertools import product

from pgq.model import ENDS_CANCELLED, TRANSITIONS, Enqueued, NewJob, Status, Verb

ENDED = {Status.DONE, Status.FAILED, Status.CANCELLED}


def reachable(start: Status) -> set[Status]:
    found, todo = {start}, [start]
    while todo:
        here = todo.pop()
        new = {after for (before, _), after in TRANSITIONS.items() if before is here} - found
        found |= new
        todo += new
    return found


def test_every_status_can_be_reached_from_every_other() -> None:
    assert all(reachable(status) == set(Status) for status in Status)


def test_only_a_claim_starts_a_job() -> None:
    starts = {
        (before, verb)
        for (before, verb), after in TRANSITIONS.items()
        if after is Status.RUNNING and before is not Status.RUNNING
    }
    assert starts == {(Status.PENDING, Verb.CLAIM)}


def test_only_an_operator_brings_back_what_has_ended() -> None:
    verbs = {verb for (before, verb) in TRANSITIONS if before in ENDED}
    assert verbs == {Verb.REQUEUE, Verb.FORCE_REQUEUE}


def test_a_live_worker_is_not_fenced_without_force() -> None:
    assert (Status.RUNNING, Verb.REQUEUE) not in TRANSITIONS
    assert (Status.RUNNING, Verb.FORCE_REQUEUE) in TRANSITIONS


def test_a_cancel_request_matters_to_whatever_would_run_again_or_fail() -> None:
    would = {
        verb
        for verb in Verb
        if TRANSITIONS.get((Status.RUNNING, verb)) in (Status.PENDING, Status.FAILED)
    }
    assert would - {Verb.FORCE_REQUEUE} == ENDS_CANCELLED


def test_the_table_speaks_of_statuses_and_verbs_alone() -> None:
    assert TRANSITIONS.keys() <= set(product(Status, Verb))
    assert {status.value for status in Status} == {
        "pending",
        "running",
        "done",
        "failed",
        "cancelled",
    }


def test_payloads_of_two_jobs_are_not_the_same_object() -> None:
    assert NewJob("a").payload is not NewJob("a").payload


def test_an_enqueued_job_is_new_unless_said_otherwise() -> None:
    assert Enqueued(7) == Enqueued(7, duplicate=False)
