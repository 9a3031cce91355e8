"""Who was silent itself a moment ago does not judge the silence of others."""

from datetime import timedelta

import psycopg
import pytest

from pgq import db
from pgq.calls import workers as calls
from pgq.errors import Conflict
from tests.support import jobs
from tests.support.jobs import Connection

LOCK = -(2**62) + 4712
SECOND = timedelta(seconds=1)


def beat(conn: Connection, worker_id: int) -> calls.Beat:
    return db.run(conn, calls.heartbeat(worker_id, lock_key=None, draining=False))


def reap_as(conn: Connection, watcher: int) -> dict[int, str]:
    reaped = db.run(conn, calls.reap(watcher=watcher))
    return {job.job_id: job.status for job in reaped}


@pytest.fixture
def watcher(elder: Connection) -> int:
    """A worker that has beaten for a while."""
    worker_id = jobs.register(elder)
    elder.execute("update pgq.workers set watching_since = now() - interval '1 minute'")
    return worker_id


@pytest.fixture
def orphan(elder: Connection, watcher: int) -> int:
    """A job whose worker has been silent for 5 seconds, its lock gone."""
    assert watcher
    worker_id = jobs.register(elder, lock_key=LOCK)
    jobs.enqueue(elder)
    job = jobs.claim_one(elder, worker_id)
    jobs.fall_silent(elder, worker_id, 5 * SECOND)
    return job.id


def test_a_watchful_worker_finds_the_dead(elder: Connection, watcher: int, orphan: int) -> None:
    assert beat(elder, watcher).overdue
    assert reap_as(elder, watcher) == {orphan: "pending"}


def test_one_that_was_silent_itself_waits_for_the_others(
    elder: Connection, watcher: int, orphan: int
) -> None:
    jobs.fall_silent(elder, watcher, 7 * SECOND)

    heard = beat(elder, watcher)

    assert not heard.overdue
    assert heard.reap_in == pytest.approx(4, abs=0.1)
    assert reap_as(elder, watcher) == {}
    elder.execute(
        "update pgq.workers set watching_since = watching_since - interval '4 s' where id = %s",
        (watcher,),
    )
    assert beat(elder, watcher).overdue
    assert reap_as(elder, watcher) == {orphan: "pending"}


def test_a_worker_that_does_not_beat_declares_nobody_dead(
    elder: Connection, watcher: int, orphan: int
) -> None:
    jobs.fall_silent(elder, watcher, 7 * SECOND)

    assert reap_as(elder, watcher) == {}
    assert jobs.row(elder, orphan)["status"] == "running"


def test_a_late_beat_that_is_not_too_late_goes_on_watching(
    elder: Connection, watcher: int, orphan: int
) -> None:
    jobs.fall_silent(elder, watcher, 5 * SECOND)

    assert beat(elder, watcher).overdue
    assert reap_as(elder, watcher) == {orphan: "pending"}


def test_a_beat_tells_how_long_silence_is_forgiven(elder: Connection) -> None:
    plain = jobs.register(elder)
    elder.execute(
        "insert into pgq.queues (queue, visibility_timeout)"
        " values ('slow', '5 min'), ('fast', '10 s')"
    )
    both = jobs.register(elder, "slow", "fast")

    assert beat(elder, plain).forgiven == timedelta(seconds=60)
    assert beat(elder, both).forgiven == timedelta(minutes=5)


def test_what_a_worker_cannot_do_stands_in_its_row(elder: Connection) -> None:
    worker_id = jobs.register(elder)
    trouble = "claim has failed for 7 s: permission denied"

    db.run(elder, calls.heartbeat(worker_id, lock_key=None, draining=False, trouble=trouble))
    assert jobs.value(elder, "select trouble from pgq.workers") == trouble

    beat(elder, worker_id)
    assert jobs.value(elder, "select trouble from pgq.workers") is None


def test_a_young_session_is_told_when_it_may_judge(
    elder: Connection, shared: str, watcher: int, orphan: int
) -> None:
    with psycopg.connect(shared, autocommit=True) as young:
        heard = beat(young, watcher)

        assert not heard.overdue
        assert heard.reap_in is not None
        assert 4 < heard.reap_in < 5
        assert jobs.row(elder, orphan)["status"] == "running"


def test_a_reaper_does_not_hold_workers_while_the_table_is_locked(
    elder: Connection, shared: str, watcher: int, orphan: int
) -> None:
    with psycopg.connect(shared) as altering:
        altering.execute("lock table pgq.jobs in access exclusive mode")
        with pytest.raises(Conflict):
            reap_as(elder, watcher)
        assert beat(elder, watcher).alive

    assert reap_as(elder, watcher) == {orphan: "pending"}


def test_a_clock_that_is_set_back_makes_nobody_immortal(
    elder: Connection, watcher: int, orphan: int
) -> None:
    """All beats and sessions seem to lie in the future then."""
    elder.execute(
        "update pgq.workers set beat_at = now() + interval '1 hour',"
        " watching_since = now() + interval '1 hour'"
    )

    heard = beat(elder, watcher)
    assert not heard.overdue
    assert jobs.value(elder, "select max(beat_at) <= now() from pgq.workers")
    elder.execute(
        "update pgq.workers set beat_at = now() - interval '5 s',"
        " watching_since = now() - interval '4 s'"
    )
    assert beat(elder, watcher).overdue
    assert reap_as(elder, watcher) == {orphan: "pending"}


def test_a_beat_goes_through_while_the_queues_are_locked(
    elder: Connection, shared: str, watcher: int
) -> None:
    with psycopg.connect(shared) as altering:
        altering.execute("lock table pgq.queues in access exclusive mode")
        heard = beat(elder, watcher)

    assert (heard.alive, heard.forgiven) == (True, None)
