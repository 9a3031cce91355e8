"""What the commands that look print, with the clock standing still: all times are given."""

import json

import psycopg
import pytest

from tests.cli.conftest import AT, Here, add_job

HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\nstatus  done \u202e\x9b1m \u2028[/foo]"


@pytest.fixture
def jobs(session: psycopg.Connection) -> None:
    """Five jobs, one in each status."""
    add_job(session, 1, queue="mail", payload={"to": "a@example.org"}, status="done", attempts=1)
    add_job(
        session, 2, queue="mail", status="failed", attempts=3,
        last_error="SMTPServerDisconnected: Connection unexpectedly closed",
    )  # fmt: skip
    add_job(session, 3, kind="resize", queue="images", status="running", attempts=1)
    add_job(session, 4, kind="resize", queue="images", status="cancelled")
    add_job(session, 5, kind="resize", priority=7, last_error="Timeout: 30 s", attempts=1)


@pytest.mark.usefixtures("jobs")
def test_jobs_as_a_table(here: Here) -> None:
    listed = here("jobs")
    error = "SMTPServerDisconnected: Connection unexpectedly closed"
    assert listed.out.splitlines() == [
        "ID  QUEUE    KIND        STATUS     ATTEMPTS  CREATED_AT            LAST_ERROR",
        " 5  default  resize      pending           1  2030-01-31T13:00:00Z  Timeout: 30 s",
        " 4  images   resize      cancelled         0  2030-01-31T12:00:00Z",
        " 3  images   resize      running           1  2030-01-31T11:00:00Z",
        f" 2  mail     send_email  failed            3  2030-01-31T10:00:00Z  {error}",
        " 1  mail     send_email  done              1  2030-01-31T09:00:00Z",
    ]
    assert (listed.code, listed.err) == (0, "")


@pytest.mark.usefixtures("jobs")
def test_jobs_for_programs(here: Here) -> None:
    expected = {
        "id": 2, "queue": "mail", "kind": "send_email", "status": "failed", "priority": 0,
        "attempts": 3, "max_attempts": 3, "created_at": "2030-01-31T10:00:00.000Z",
        "scheduled_at": "2030-01-31T10:00:00.000Z", "finished_at": "2030-01-31T10:00:00.000Z",
        "worker_id": None, "last_error": "SMTPServerDisconnected: Connection unexpectedly closed",
    }  # fmt: skip
    arguments = ["jobs", "--status", "failed", "--output"]
    assert json.loads(here(*arguments, "json").out) == [expected]
    assert json.loads(here(*arguments, "jsonl").out) == expected
    values = ["" if value is None else str(value) for value in expected.values()]
    assert here(*arguments, "csv").out == f"{','.join(expected)}\n{','.join(values)}\n"


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (["--limit", "2"], [5, 4]),
        (["--queue", "mail"], [2, 1]),
        (["-q", "nowhere"], []),
        (["--kind", "resize"], [5, 4, 3]),
        (["--error", "timeout"], [5]),
        (["--error", "%"], []),
        (["--status", "pending"], [5]),
        (["--status", "running"], [3]),
        (["--status", "failed"], [2]),
        (["--status", "done"], [1]),
        (["--status", "cancelled"], [4]),
        (["--status", "pending", "--error", "TIMEOUT", "--queue", "default"], [5]),
        (["--status", "failed", "--kind", "resize"], []),
        (["--since", "2030-01-31T13:00:00+01:00"], [5, 4]),
        (["--status", "running", "--since", "2030-01-31T11:00:01Z"], []),
        (["--since", "1d"], [5, 4, 3, 2, 1]),
    ],
)
def test_jobs_are_filtered_and_the_newest_come_first(
    arguments: list[str], ids: list[int], here: Here
) -> None:
    listed = here("jobs", *arguments, "--output", "jsonl")
    assert [json.loads(line)["id"] for line in listed.out.splitlines()] == ids


def test_since_a_duration_is_measured_by_the_clock_of_the_database(
    session: psycopg.Connection, here: Here
) -> None:
    session.execute(
        "insert into pgq.jobs (id, kind, created_at)"
        " values (1, 'a', now() - interval '50 minutes'), (2, 'a', now() - interval '70 minutes')"
    )
    for status in ([], ["--status", "pending"]):
        listed = here("jobs", *status, "--since", "1h", "--output", "jsonl")
        assert [json.loads(line)["id"] for line in listed.out.splitlines()] == [1]


@pytest.mark.usefixtures("jobs")
def test_a_list_that_is_cut_short_says_so(here: Here) -> None:
    assert here("jobs", "--limit", "2").err == "pgq: the newest 2; --limit shows more\n"
    assert here("jobs", "--limit", "2", "--output", "csv").err == ""


def test_no_jobs_are_said_on_stderr_and_nothing_is_on_stdout(here: Here) -> None:
    assert here("jobs") == here("jobs", "--status", "failed")
    listed = here("jobs")
    assert (listed.code, listed.out, listed.err) == (0, "", "pgq: no job matches\n")
    assert here("jobs", "--output", "json").out == "[]\n"
    assert here("jobs", "--output", "csv").out.startswith("id,queue,kind,")


def test_stats_count_by_queue(session: psycopg.Connection, here: Here) -> None:
    add_job(session, 1, queue="mail", status="failed")
    add_job(session, 2, queue="mail", status="running")
    add_job(session, 3, queue="images")  # due in the year 2030
    add_job(session, 4, queue="mail", status="done")
    session.execute("insert into pgq.queues (queue) values ('quiet')")
    session.execute(
        "insert into pgq.throughput (queue, minute, slot, done, failed, retried) values"
        " ('mail', date_trunc('minute', now()), 0, 7, 2, 1),"
        " ('mail', date_trunc('minute', now()), 1, 3, 0, 0),"
        " ('mail', now() - interval '61 minutes', 0, 100, 100, 100)"
    )
    assert here("stats").out.splitlines() == [
        "QUEUE   READY  SCHEDULED  RUNNING  FAILED  DONE_1H  OLDEST_READY_AGE",
        "images      0          1        0       0        0",
        "mail        0          0        1       1       10",
        "quiet       0          0        0       0        0",
    ]
    heading, _, mail, _ = here("stats", "--output", "csv").out.splitlines()
    assert heading.endswith(",failed,done_1h,failed_1h,retried_1h,oldest_ready_at,oldest_ready_age")
    assert mail == "mail,0,0,1,1,10,2,1,,"


def test_stats_tell_how_far_behind_the_workers_are(session: psycopg.Connection, here: Here) -> None:
    add_job(session, 1, scheduled_at="2020-01-01T00:00:00Z")
    (row,) = json.loads(here("stats", "--output", "json").out)
    assert (row["ready"], row["oldest_ready_at"]) == (1, "2020-01-01T00:00:00.000Z")
    assert row["oldest_ready_age"] > 86400 * 365


def test_stats_of_an_empty_database(here: Here) -> None:
    assert here("stats").err == "pgq: no queue has jobs yet\n"
    assert here("stats", "--output", "json").out == "[]\n"


def test_show_tells_the_whole_story(session: psycopg.Connection, here: Here) -> None:
    add_job(
        session, 2, queue="mail", status="failed", attempts=2, max_attempts=2, timeout="90 s",
        payload={"to": "a@example.org"}, last_error="ConnectionError: no answer", worker_id=7,
    )  # fmt: skip
    session.execute(
        "insert into pgq.workers (id, host, pid, version, queues, concurrency)"
        " overriding system value values (7, 'web-1', 4711, '0', '{mail}', 1)"
    )
    session.execute(
        "insert into pgq.attempts"
        " (job_id, attempt, worker_id, started_at, finished_at, outcome, error, traceback, output)"
        " values (2, 1, 7, %(at)s - interval '2 s', %(at)s, 'timed out', 'slow', null, %(out)s),"
        " (2, 2, 7, %(at)s - interval '1.5 s', %(at)s, 'failed', 'no answer', %(trace)s, null)",
        {"at": AT, "trace": "a\n b", "out": "half\nway"},
    )
    shown = here("show", "2")
    assert shown.out.splitlines() == [
        "id                   2",
        "queue                mail",
        "kind                 send_email",
        "status               failed",
        "priority             0",
        "attempts             2",
        "max_attempts         2",
        "snoozes              0",
        "losses               0",
        "timeout              1m30s",
        "created_at           2030-01-31T10:00:00Z",
        "scheduled_at         2030-01-31T10:00:00Z",
        "finished_at          2030-01-31T10:00:00Z",
        "updated_at           2030-01-31T10:00:00Z",
        "worker_id            7",
        "worker_host          web-1",
        "worker_pid           4711",
        "",
        "payload",
        "  {",
        '    "to": "a@example.org"',
        "  }",
        "",
        "last_error",
        "  ConnectionError: no answer",
        "",
        "attempt 1 timed out at 2030-01-31T08:00:00Z after 2s on worker 7",
        "  slow",
        "  output",
        "    half",
        "    way",
        "",
        "attempt 2 failed at 2030-01-31T08:00:00Z after 1.5s on worker 7",
        "  no answer",
        "  a",
        "   b",
    ]
    found = json.loads(here("show", "2", "--output", "json").out)
    assert (found["payload"], found["timeout"]) == ({"to": "a@example.org"}, 90.0)
    assert [(row["attempt"], row["outcome"], row["output"]) for row in found["history"]] == [
        (1, "timed out", "half\nway"),
        (2, "failed", None),
    ]
    assert json.loads(here("show", "2", "--output", "jsonl").out) == found
    assert here("show", "2", "--output", "csv").out.count("\n") == 2


def test_show_tells_how_far_a_running_job_is(session: psycopg.Connection, here: Here) -> None:
    said = {"fraction": 0.4, "note": "page 3"}
    add_job(session, 1, status="running", attempts=1, progress=said)
    add_job(session, 2, status="done", attempts=1, progress=said)
    assert "progress             40% page 3\n" in here("show", "1").out
    assert "progress" not in here("show", "2").out
    assert json.loads(here("show", "2", "--output", "json").out)["progress"] == said


@pytest.fixture
def hostile(session: psycopg.Connection) -> None:
    """A job with hostile text in every field that takes text."""
    add_job(
        session, 1, queue=HOSTILE, kind=HOSTILE, unique_key=HOSTILE, payload={HOSTILE: HOSTILE},
        result={HOSTILE: [HOSTILE]}, last_error=HOSTILE, status="failed", worker_id=7,
    )  # fmt: skip
    add_job(
        session, 2, queue=HOSTILE, kind=HOSTILE, status="running", attempts=1,
        progress={"fraction": 0.5, "note": HOSTILE},
    )  # fmt: skip
    session.execute(
        "insert into pgq.workers (id, host, pid, version, queues, concurrency)"
        " overriding system value values (7, %s, 1, '0', '{}', 1)",
        (HOSTILE,),
    )
    session.execute(
        "insert into pgq.attempts (job_id, attempt, outcome, error, traceback, output)"
        " values (1, 1, 'failed', %(text)s, %(text)s, %(text)s)",
        {"text": HOSTILE},
    )


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize("output", ["table", "json", "jsonl", "csv"])
@pytest.mark.parametrize(
    "view", [["jobs"], ["show", "1"], ["show", "2"], ["stats"], ["requeue", "1", "2"]]
)
def test_no_stored_text_reaches_the_terminal_raw(view: list[str], output: str, here: Here) -> None:
    seen = here(*view, "--output", output)
    assert "x1b[2J" in seen.out or "u001b[2J" in seen.out or view[0] == "requeue"
    for line in (seen.out + seen.err).split("\n"):
        assert line.isprintable(), line
        assert not line.startswith("status  done")


@pytest.mark.usefixtures("hostile")
def test_programs_get_hostile_text_back_unchanged(here: Here) -> None:
    found = json.loads(here("show", "1", "--output", "json").out)
    assert (found["kind"], found["payload"], found["result"]) == (
        HOSTILE,
        {HOSTILE: HOSTILE},
        {HOSTILE: [HOSTILE]},
    )
    assert found["history"][0]["traceback"] == HOSTILE


@pytest.mark.usefixtures("hostile")
def test_the_error_of_a_job_that_is_waited_for_is_one_safe_line(here: Here) -> None:
    waited = here("wait", "1")
    assert (waited.code, waited.out) == (1, "")
    assert waited.err.endswith("\n")
    assert waited.err[:-1].isprintable()
