"""One job as text."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgq.admin.show import AttemptRow, JobDetail
from pgq_cli.story import as_json, for_people

AT = datetime(2030, 1, 31, 8, tzinfo=UTC)
HOSTILE = "\x1b[2J\nstatus  done\r\u202e"


def job(**changes: Any) -> JobDetail:
    plain = JobDetail(
        id=42, queue="mail", kind="send_email", status="pending", priority=0, attempts=1,
        max_attempts=3, snoozes=0, losses=0, unique_key=None, timeout=timedelta(minutes=5),
        created_at=AT, scheduled_at=AT, locked_at=None, cancel_requested_at=None,
        kill_requested_at=None, finished_at=None, updated_at=AT, worker_id=None, worker_host=None,
        worker_pid=None, progress=None,
        payload={"to": "a@example.org"}, result=None, last_error=None,
    )  # fmt: skip
    return plain._replace(**changes)


def attempt(**changes: Any) -> AttemptRow:
    plain = AttemptRow(
        1, "failed", 7, AT - timedelta(seconds=1.5), AT, "boom", "Trace\n  a:1\n", None
    )
    return plain._replace(**changes)


def test_people_see_what_is_there() -> None:
    assert for_people(job(last_error="boom"), [attempt()]).splitlines() == [
        "id                   42",
        "queue                mail",
        "kind                 send_email",
        "status               pending",
        "priority             0",
        "attempts             1",
        "max_attempts         3",
        "snoozes              0",
        "losses               0",
        "timeout              5m",
        "created_at           2030-01-31T08:00:00Z",
        "scheduled_at         2030-01-31T08:00:00Z",
        "updated_at           2030-01-31T08:00:00Z",
        "",
        "payload",
        "  {",
        '    "to": "a@example.org"',
        "  }",
        "",
        "last_error",
        "  boom",
        "",
        "attempt 1 failed at 2030-01-31T08:00:00Z after 1.5s on worker 7",
        "  boom",
        "  Trace",
        "    a:1",
    ]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ({"fraction": 0.4, "note": "page 3 of 7"}, "40% page 3 of 7"),
        ({"fraction": 1}, "100%"),
        ({"fraction": 0, "note": "\x1b[2J\nstatus  done"}, r"0% \x1b[2J\nstatus  done"),
        ({"fraction": 10**400}, '{"fraction": 1' + "0" * 400 + "}"),
        ("half way", '"half way"'),
    ],
)
def test_a_running_job_shows_how_far_it_is(said: Any, shown: str) -> None:
    text = for_people(job(status="running", progress=said), [])
    assert f"progress             {shown}\n" in text
    assert "progress" not in for_people(job(status="done", progress=said), [])


def test_an_attempt_shows_what_it_wrote_below_its_error() -> None:
    text = for_people(job(), [attempt(output="warning shop: slow\nerror shop: no answer\n")])
    assert text.splitlines()[-3:] == [
        "  output",
        "    warning shop: slow",
        "    error shop: no answer",
    ]


def test_people_see_the_end_of_a_long_output() -> None:
    output = "\n".join(f"line {number}" for number in range(1000))
    lines = for_people(job(), [attempt(output=output)]).splitlines()
    shown = [line for line in lines if line.startswith("    line ")]
    assert shown == [f"    line {number}" for number in range(940, 1000)]
    left = len(output) - len("\n".join(shown).replace("    ", ""))
    assert f"    ... {left} characters before: --output json has all" in lines
    assert max(map(len, for_people(job(), [attempt(output="x" * 9000)]).splitlines())) < 4100


def test_an_attempt_that_never_started_has_no_duration() -> None:
    text = for_people(job(), [attempt(started_at=None, worker_id=None, traceback=None)])
    assert text.splitlines()[-2:] == ["attempt 1 failed at 2030-01-31T08:00:00Z", "  boom"]


def test_people_see_the_head_of_what_is_huge_and_json_has_all() -> None:
    huge = job(payload={"blob": "x" * 1_000_000}, last_error="\n".join(map(str, range(10_000))))
    text = for_people(huge, [attempt(traceback="t" * 100_000)])
    assert len(text) < 20_000
    assert text.count("characters more: --output json has all") == 3
    found = json.loads(as_json(huge, [], indent=None))
    assert found["payload"] == huge.payload
    assert found["last_error"] == huge.last_error


def test_json_names_are_the_columns_and_the_history_is_a_list() -> None:
    found = json.loads(as_json(job(), [attempt()], indent=2))
    assert list(found) == [*JobDetail._fields, "history"]
    assert list(found["history"][0]) == list(AttemptRow._fields)
    assert found["timeout"] == 300.0


def test_no_stored_text_can_forge_a_field_or_move_a_cursor() -> None:
    bad = job(
        queue=HOSTILE, kind=HOSTILE, unique_key=HOSTILE, worker_host=HOSTILE,
        payload={HOSTILE: HOSTILE}, result=HOSTILE, last_error=HOSTILE,
    )  # fmt: skip
    text = for_people(
        bad, [attempt(error=HOSTILE, traceback=HOSTILE, outcome=HOSTILE, output=HOSTILE)]
    )
    lines = text.splitlines()
    assert all(line.isprintable() for line in lines)
    assert [line for line in lines if line.startswith("status")] == ["status               pending"]
    found = json.loads(as_json(bad, [], indent=None))
    assert (found["queue"], found["payload"]) == (HOSTILE, {HOSTILE: HOSTILE})
