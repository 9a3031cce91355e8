"""Kill: who is told, who is taken, and what a worker hears."""

import pytest

from pgq.model import Cancelled
from tests.support import jobs
from tests.support.jobs import Connection


def end_worker(conn: Connection, worker_id: int, way: str) -> None:
    match way:
        case "unknown":
            conn.execute("delete from pgq.workers where id = %s", (worker_id,))
        case "stopped":
            conn.execute("select pgq.stop_worker(%s)", (worker_id,))
        case _:
            jobs.die(conn, worker_id)


def test_a_kill_is_answered_row_by_row(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    ids = [jobs.enqueue(conn) for _ in range(3)]
    done, _ = jobs.claim(conn, worker_id, 2)
    jobs.finish(conn, worker_id, done)

    asked = (ids[2] + 1000, *reversed(ids), ids[0])
    assert jobs.kill(conn, *asked) == ["already done", "requested", "cancelled", "not found"]
    assert jobs.kill(conn, ids[2]) == ["already cancelled"]


def test_the_worker_of_a_running_job_hears_of_a_kill_apart_from_cancels(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.fill(conn, 2)
    asked, killed = jobs.claim(conn, worker_id)
    jobs.cancel(conn, asked.id)

    (answer,) = jobs.rows(conn, "select * from pgq.kill(%s)", [killed.id])

    assert answer == {"id": killed.id, "outcome": "requested", "worker_id": worker_id}
    heard = jobs.rows(conn, "select cancelled, killed from pgq.heartbeat(%s)", worker_id)
    assert heard == [{"cancelled": [asked.id], "killed": [killed.id]}]
    row = jobs.row(conn, killed.id)
    assert (row["status"], row["lease"], row["worker_id"]) == ("running", killed.lease, worker_id)


def test_a_kill_after_a_cancel_is_a_stronger_wish_and_not_the_other_way(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)

    for ask in (jobs.cancel, jobs.kill, jobs.cancel):
        assert ask(conn, job.id) == ["requested"]

    assert jobs.value(conn, "select killed from pgq.heartbeat(%s)", worker_id) == [job.id]
    jobs.settle(conn, worker_id, Cancelled("killed by an operator (ended by SIGKILL)"), job)
    row = jobs.row(conn, job.id)
    assert (row["status"], row["last_error"]) == (
        "cancelled",
        "killed by an operator (ended by SIGKILL)",
    )


@pytest.mark.parametrize("verb", ["cancel", "kill"])
@pytest.mark.parametrize("way", ["unknown", "stopped", "dead"])
def test_a_running_job_whose_worker_is_gone_is_cancelled_at_once(
    conn: Connection, verb: str, way: str
) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)
    end_worker(conn, worker_id, way)

    ask = jobs.kill if verb == "kill" else jobs.cancel
    assert ask(conn, job.id) == ["cancelled"]

    row = jobs.row(conn, job.id)
    assert (row["status"], row["lease"], row["worker_id"]) == ("cancelled", None, None)
    word = "killed" if verb == "kill" else "cancelled"
    who = f"w-{worker_id}" + ("" if way == "unknown" else " (testhost, pid 4711)")
    assert row["last_error"] == f"{word} by an operator after its worker was lost: {who}"
    (attempt,) = jobs.attempts(conn, job.id)
    assert (attempt["outcome"], attempt["worker_id"]) == ("lost", worker_id)
    assert jobs.finish(conn, worker_id, job) == [job.id]


def test_force_takes_a_job_from_a_live_worker_and_frees_its_key(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn, unique_key="invoice 7")
    job = jobs.claim_one(conn, worker_id)

    (answer,) = jobs.rows(conn, "select * from pgq.kill(%s, true)", [job.id])

    assert answer == {"id": job.id, "outcome": "cancelled", "worker_id": worker_id}
    row = jobs.row(conn, job.id)
    assert (row["status"], row["lease"], row["worker_id"]) == ("cancelled", None, None)
    assert row["last_error"] == (
        f"killed by an operator by force: w-{worker_id} (testhost, pid 4711) may still run it"
    )
    assert [attempt["outcome"] for attempt in jobs.attempts(conn, job.id)] == ["cancelled"]
    assert jobs.enqueue(conn, unique_key="invoice 7") != job.id
    assert jobs.finish(conn, worker_id, job) == [job.id]


def test_force_that_is_null_is_no_force(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    jobs.enqueue(conn)
    job = jobs.claim_one(conn, worker_id)

    assert jobs.value(conn, "select outcome from pgq.kill(%s, null)", [job.id]) == "requested"


def test_a_killed_pending_job_keeps_the_error_of_its_last_attempt(conn: Connection) -> None:
    job_id = jobs.enqueue(conn)
    conn.execute("update pgq.jobs set last_error = 'no luck'")

    jobs.kill(conn, job_id)

    row = jobs.row(conn, job_id)
    assert (row["status"], row["last_error"]) == ("cancelled", "no luck")
    assert jobs.attempts(conn, job_id) == []


def test_a_requeue_takes_the_kill_back(conn: Connection) -> None:
    worker_id = jobs.register(conn)
    job_id = jobs.enqueue(conn)
    jobs.claim_one(conn, worker_id)
    jobs.kill(conn, job_id)

    assert jobs.requeue(conn, job_id, force=True) == ["requeued"]

    row = jobs.row(conn, job_id)
    assert (row["cancel_requested_at"], row["kill_requested_at"]) == (None, None)


def test_a_kill_is_written_down_with_its_force(conn: Connection) -> None:
    job_id = jobs.enqueue(conn)
    conn.execute("select * from pgq.kill(%s, true, 'ann')", ([job_id, job_id + 1000],))

    (entry,) = jobs.rows(conn, "select actor, action, changed, details from pgq.audit")
    assert entry == {
        "actor": "ann",
        "action": "kill",
        "changed": 1,
        "details": {"ids": [job_id, job_id + 1000], "asked": 2, "force": True},
    }
