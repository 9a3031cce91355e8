"""What a handler in a process writes is kept with a failed attempt; what it logs is logged too."""

import pgq
from tests.support import jobs
from tests.support.jobs import Connection
from tests.support.workers import Workers, drain, run_worker
from tests.worker import apart
from tests.worker.conftest import WorkOff

APP = ("--app", "tests.worker.apart:app")
WAYS = ["by print", "by stderr", "by descriptor", "by a child"]


def test_all_that_it_writes_and_logs_is_kept_with_a_failed_attempt(
    queue: Connection, fleet: Workers
) -> None:
    job_id = jobs.enqueue(queue, "write", payload={"fail": True})
    assert fleet.start(*APP, "--drain").ended() == 0

    (attempt,) = jobs.attempts(queue, job_id)
    assert attempt["error"] == "ValueError: no"
    lines = attempt["output"].splitlines()
    assert [line for line in lines if line in WAYS] == WAYS
    assert [line for line in lines if line.endswith(" info shop: by logging")]


def test_what_it_logs_is_logged_and_what_it_writes_cannot_pass_for_that(
    queue: Connection, fleet: Workers
) -> None:
    job_id = jobs.enqueue(queue, "write", payload={"fail": False})
    worker = fleet.start(*APP, "--drain")
    assert worker.ended() == 0

    said = worker.seen("log", logger="shop")
    assert (said["message"], said["job"], said["level"]) == ("by logging", job_id, "info")
    assert {line["event"] for line in worker.log()}.isdisjoint(WAYS)
    assert jobs.attempts(queue, job_id) == []


def test_what_it_logs_is_written_by_the_applications_own_handlers_in_the_worker(
    shared: str, queue: Connection
) -> None:
    jobs.enqueue(queue, "speak apart", payload={"words": "hello"})

    ended = run_worker("--app", "tests.worker.speaking:app", "--drain", dsn=shared)

    assert ended.stdout == "shop says hello\n"
    assert "hello" not in ended.stderr


def test_output_of_any_length_and_kind_is_kept_in_part(
    work_off: WorkOff, queue: Connection
) -> None:
    row = work_off(apart.write_much, {"megabytes": 100}, isolation="process")

    assert row["last_error"] == "ValueError: that was much"
    (attempt,) = jobs.attempts(queue, row["id"])
    assert attempt["output"].startswith("...\ny\ny\n")
    assert attempt["output"].splitlines()[-1] == r"a\x00b\xffc"
    assert len(attempt["output"]) < 20_000


def test_something_that_goes_on_writing_holds_up_nothing(shared: str, queue: Connection) -> None:
    app = pgq.App()
    app.job("leave", isolation="process")(apart.leave_a_writer)
    jobs.fill(queue, 5, "leave")
    drain(shared, app, concurrency=1)

    assert jobs.rows(queue, "select status, count(*) from pgq.jobs group by 1") == [
        {"status": "done", "count": 5}
    ]
