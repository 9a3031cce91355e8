"""What operators ask for: requeue and cancel, answered row by row and written to the audit."""

from pgq.model import Buried
from tests.support import jobs
from tests.support.jobs import Connection


def test_a_requeue_starts_a_job_anew(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    job_id = jobs.enqueue(conn, priority=5, payload={"a": 1})
    jobs.settle(conn, worker_id, Buried("no use"), jobs.claim_one(conn, worker_id))
    conn.execute("update pgq.jobs set losses = 2, snoozes = 3, result = '1'")

    assert jobs.requeue(conn, job_id) == ["requeued"]

    row = jobs.row(conn, job_id)
    assert (row["status"], row["attempts"], row["losses"], row["snoozes"]) == ("pending", 0, 0, 0)
    assert (row["result"], row["finished_at"], row["cancel_requested_at"]) == (None, None, None)
    assert (row["lease"], row["worker_id"], row["priority"]) == (None, None, 5)
    assert row["scheduled_at"] == jobs.now(conn)
    assert [attempt["attempt"] for attempt in jobs.attempts(conn, job_id)] == [1]


def test_a_requeue_is_answered_row_by_row(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    done, running, pending = (jobs.enqueue(conn) for _ in range(3))
    first, _ = jobs.claim(conn, worker_id, 2)
    jobs.finish(conn, worker_id, first)
    missing = pending + 1000

    assert jobs.requeue(conn, missing, pending, done, running, done) == [
        "requeued",
        "running",
        "already pending",
        "not found",
    ]
    assert jobs.row(conn, running)["status"] == "running"


def test_a_requeue_twice_is_harmless(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    job_id = jobs.enqueue(conn)
    jobs.finish(conn, worker_id, jobs.claim_one(conn, worker_id))

    assert jobs.requeue(conn, job_id) == ["requeued"]
    before = jobs.row(conn, job_id)
    assert jobs.requeue(conn, job_id) == ["already pending"]
    assert jobs.row(conn, job_id) == before


def test_a_running_job_of_a_dead_worker_may_be_requeued(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)
    name = jobs.value(conn, "select pgq.worker_name(%s)", worker_id)
    jobs.die(conn, worker_id)

    assert jobs.requeue(conn, job.id) == ["requeued"]
    assert jobs.finish(conn, worker_id, job) == [job.id]
    (attempt,) = jobs.attempts(conn, job.id)
    assert (attempt["outcome"], attempt["attempt"], attempt["worker_id"]) == ("lost", 1, worker_id)
    assert attempt["started_at"] is not None
    assert attempt["error"] == f"requeued by an operator after its worker was lost: {name}"


def test_a_running_job_of_a_live_worker_is_requeued_only_by_force(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)

    assert jobs.requeue(conn, job.id) == ["running"]
    assert jobs.attempts(conn, job.id) == []
    answer = "select outcome, worker_id from pgq.requeue(array[%s::bigint], true)"
    (forced,) = jobs.rows(conn, answer, job.id)
    assert forced == {"outcome": "requeued", "worker_id": worker_id}
    assert jobs.finish(conn, worker_id, job) == [job.id]
    (attempt,) = jobs.attempts(conn, job.id)
    assert (attempt["outcome"], attempt["attempt"], attempt["worker_id"]) == ("lost", 1, worker_id)
    name = jobs.value(conn, "select pgq.worker_name(%s)", worker_id)
    assert attempt["error"] == f"requeued by an operator by force: {name} may still run it"


def test_a_cancel_is_answered_row_by_row(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    ids = [jobs.enqueue(conn) for _ in range(4)]
    done, failed, running = jobs.claim(conn, worker_id, 3)
    jobs.finish(conn, worker_id, done)
    jobs.settle(conn, worker_id, Buried("no use"), failed)

    asked = (ids[3] + 1000, *reversed(ids), ids[0])
    assert jobs.cancel(conn, *asked) == [
        "already done",
        "already failed",
        "requested",
        "cancelled",
        "not found",
    ]
    assert jobs.cancel(conn, ids[3]) == ["already cancelled"]
    assert jobs.row(conn, running.id)["status"] == "running"


def test_a_pending_job_that_is_cancelled_runs_no_more(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    job_id = jobs.enqueue(conn)

    jobs.cancel(conn, job_id)

    row = jobs.row(conn, job_id)
    assert (row["status"], row["finished_at"]) == ("cancelled", jobs.now(conn))
    assert jobs.claim(conn, worker_id) == []


def test_a_worker_hears_of_cancel_requests_until_its_job_has_ended(conn: Connection) -> None:
    worker_id, other = jobs.register(conn, "default", "more"), jobs.register(conn)
    jobs.fill(conn, 3)
    first, second, third = jobs.claim(conn, worker_id)
    heard = "select cancelled from pgq.heartbeat(%s)"
    assert jobs.value(conn, heard, worker_id) == []

    jobs.cancel(conn, first.id, third.id)

    assert sorted(jobs.value(conn, heard, worker_id)) == [first.id, third.id]
    assert jobs.value(conn, heard, other) == []
    jobs.finish(conn, worker_id, first, second, third)
    assert jobs.value(conn, heard, worker_id) == []


def test_an_ok_that_comes_before_the_cancel_wins(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    job_id = jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)
    jobs.cancel(conn, job_id)

    jobs.finish(conn, worker_id, job)

    row = jobs.row(conn, job_id)
    assert (row["status"], row["cancel_requested_at"]) == ("done", None)
    assert jobs.cancel(conn, job_id) == ["already done"]


def test_every_action_is_written_down_with_who_and_how_many(conn: Connection) -> None:
    ids = [jobs.enqueue(conn) for _ in range(150)]
    conn.execute("select * from pgq.cancel(%s, 'ann')", (ids,))
    conn.execute("select * from pgq.requeue(%s, true, 'bob')", (ids,))
    jobs.cancel(conn, ids[0] - 1000)

    audit = jobs.rows(conn, "select * from pgq.audit order by id")

    assert [(row["actor"], row["action"], row["changed"]) for row in audit] == [
        ("ann", "cancel", 150),
        ("bob", "requeue", 150),
        (jobs.value(conn, "select session_user::text"), "cancel", 0),
    ]
    assert audit[0]["details"] == {"ids": ids[:100], "asked": 150}
