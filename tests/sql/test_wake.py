"""Who is woken by what: waiting workers of the queue and kind, a few of them, with a short word."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql

import pgq
from pgq import db
from pgq.calls import workers as worker_calls
from pgq.model import Failed, HandedBack, NewJob, Snoozed
from tests.support import jobs
from tests.support.databases import PATIENCE
from tests.support.jobs import Connection

HOUR = timedelta(hours=1)
MOST = 8


class Ears:
    """A session that hears what is sent to the workers it made."""

    def __init__(self, session: Connection, conn: Connection) -> None:
        self._session = session
        self._conn = conn
        self._listen("said")

    def waiting(self, *queues: str, kinds: Sequence[str] | None = None) -> int:
        """A worker that waits to be woken."""
        worker_id = jobs.register(self._conn, *queues, kinds=kinds)
        db.run(self._conn, worker_calls.set_waiting(worker_id, waiting=True))
        self._listen(f"pgq_{worker_id}")
        return worker_id

    def heard(self) -> list[int]:
        """The workers notified since the last time, in order of id, one for each notification."""
        self._conn.execute("notify said")
        woken: list[int] = []
        for message in self._session.notifies(timeout=PATIENCE):
            if message.channel == "said":
                return sorted(woken)
            assert message.payload == "look"
            woken.append(int(message.channel.removeprefix("pgq_")))
        raise TimeoutError("the notification that ends all others was not heard")

    def _listen(self, channel: str) -> None:
        self._session.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))


@pytest.fixture
def conn(shared: str) -> Iterator[Connection]:
    """A connection that commits each statement: a notification is sent at commit."""
    with psycopg.connect(shared, autocommit=True) as conn:
        yield conn


@pytest.fixture
def ears(shared: str, conn: Connection) -> Iterator[Ears]:
    with psycopg.connect(shared, autocommit=True) as session:
        yield Ears(session, conn)


def test_a_transaction_wakes_a_waiting_worker_once_at_commit(ears: Ears, conn: Connection) -> None:
    worker_id = ears.waiting()

    with conn.transaction():
        jobs.enqueue(conn)
        jobs.enqueue(conn)

    assert ears.heard() == [worker_id]


def test_an_enqueue_that_is_rolled_back_wakes_nobody(ears: Ears, conn: Connection) -> None:
    ears.waiting()

    with conn.transaction(force_rollback=True):
        jobs.enqueue(conn)

    assert ears.heard() == []


def test_a_worker_that_does_not_wait_is_left_alone(ears: Ears, conn: Connection) -> None:
    worker_id = ears.waiting()
    db.run(conn, worker_calls.set_waiting(worker_id, waiting=False))

    jobs.enqueue(conn)

    assert ears.heard() == []


def test_only_workers_of_the_queue_and_the_kind_are_woken(ears: Ears, conn: Connection) -> None:
    mailer = ears.waiting("mails", "more", kinds=["mail", "letter"])
    ears.waiting("mails", kinds=["resize"])
    ears.waiting("other", kinds=["mail"])
    omnivore = ears.waiting("mails")

    jobs.enqueue(conn, "mail", queue="mails")
    first = ears.heard()
    pgq.enqueue_many(conn, [NewJob("mail", queue="mails")] * 10)

    assert first in ([mailer], [omnivore])
    assert ears.heard() == [mailer, omnivore]
    jobs.enqueue(conn, "unheard of", queue="other")
    assert ears.heard() == []


def test_a_job_that_is_not_due_wakes_nobody(ears: Ears, conn: Connection) -> None:
    ears.waiting()

    jobs.enqueue(conn, delay=HOUR)

    assert ears.heard() == []


@pytest.mark.parametrize("state", ["dead", "stopped", "silent"])
def test_a_worker_that_cannot_look_is_not_woken(ears: Ears, conn: Connection, state: str) -> None:
    worker_id = ears.waiting()
    match state:
        case "dead":
            jobs.die(conn, worker_id)
        case "stopped":
            db.run(conn, worker_calls.stop(worker_id))
            db.run(conn, worker_calls.set_waiting(worker_id, waiting=True))
        case _:
            jobs.fall_silent(conn, worker_id, timedelta(seconds=11))

    jobs.enqueue(conn)

    assert ears.heard() == []


def test_as_many_workers_are_woken_as_there_are_jobs_and_eight_at_most(
    ears: Ears, conn: Connection
) -> None:
    for _ in range(MOST + 4):
        ears.waiting()

    for count, woken in ((1, 1), (3, 3), (MOST, MOST), (MOST + 1, MOST), (500, MOST)):
        jobs.fill(conn, count)
        assert len(set(ears.heard())) == woken


def test_the_workers_to_wake_are_drawn_by_lot(ears: Ears, conn: Connection) -> None:
    for _ in range(10):
        ears.waiting()

    woken = set()
    for _ in range(20):
        jobs.enqueue(conn)
        woken.update(ears.heard())

    assert len(woken) > 1


def test_copy_wakes_once_for_the_whole_statement(ears: Ears, conn: Connection) -> None:
    for _ in range(MOST + 4):
        ears.waiting()

    with conn.cursor().copy("copy pgq.jobs (kind) from stdin") as copy:
        for _ in range(500):
            copy.write_row(("mail",))

    assert len(ears.heard()) == MOST


def test_large_jobs_with_long_names_fit_into_a_notification(ears: Ears, conn: Connection) -> None:
    queue, kind = "好" * 200, "🎉" * 200
    worker_id = ears.waiting(queue, kinds=[kind])

    jobs.enqueue(conn, kind, queue=queue, unique_key="é" * 500, payload={"text": "é" * 10_000})

    assert ears.heard() == [worker_id]


def test_the_channel_of_the_largest_worker_fits(ears: Ears, conn: Connection) -> None:
    conn.execute("alter table pgq.workers alter column id restart with 9223372036854775807")
    try:
        worker_id = ears.waiting()
        jobs.enqueue(conn)
        assert ears.heard() == [worker_id] == [2**63 - 1]
    finally:
        conn.execute("alter table pgq.workers alter column id restart with 1")


def test_a_job_that_goes_back_and_is_due_wakes_others(ears: Ears, conn: Connection) -> None:
    busy = jobs.register(conn)
    jobs.fill(conn, 4)
    handed_back, retried, later, snoozed = jobs.claim(conn, busy)
    idle = ears.waiting()

    jobs.settle(conn, busy, Failed("again", delay=HOUR), later)
    jobs.settle(conn, busy, Snoozed(HOUR), snoozed)
    assert ears.heard() == []
    jobs.settle(conn, busy, HandedBack(), handed_back)
    assert ears.heard() == [idle]
    jobs.settle(conn, busy, Failed("again", delay=timedelta(0)), retried)
    assert ears.heard() == [idle]


def test_jobs_of_the_dead_wake_the_living(ears: Ears, conn: Connection) -> None:
    doomed = jobs.register(conn)
    jobs.fill(conn, 3)
    jobs.claim(conn, doomed)
    idle = ears.waiting()
    jobs.die(conn, doomed)

    jobs.reap(conn)

    assert ears.heard() == [idle]


def test_a_requeue_of_many_wakes_eight(ears: Ears, conn: Connection) -> None:
    busy = jobs.register(conn)
    jobs.fill(conn, 100)
    claimed = jobs.claim(conn, busy)
    jobs.finish(conn, busy, *claimed)
    for _ in range(MOST + 4):
        ears.waiting()

    jobs.requeue(conn, *[job.id for job in claimed])

    assert len(ears.heard()) == MOST
