"""`pgq worker`: which app, which database, and jobs that are done. What a worker does is tested
in tests/worker."""

import json
from pathlib import Path

import psycopg
import pytest

from tests.cli.conftest import Run, add_job

SHOP = """
import pgq

app = pgq.App()
nothing = pgq.App()
number = 7

@app.job("greet", queue="greetings")
async def greet(name):
    return f"Hello {name}"

@app.job("other")
def other():
    return None
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A directory with an app in it, and modules that do not import."""
    files = {
        "shop.py": SHOP,
        "syntax.py": "x = 1\ndef f(:\n",
        "missing.py": "x = 1\nimport not_installed_anywhere\n",
        "broken.py": "def deep():\n    return 1 / 0\n\n\ndeep()\n",
        "leaving.py": "import sys\nsys.exit('bye')\n",
        "hostile.py": "raise ValueError('a\\npgq: all is well\\x1b[2J')\n",
        "twice.py": SHOP + '\n\n@app.job("greet")\ndef again(): ...\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("shop", ["write it MODULE:APP"]),
        ("shop:", ["write it MODULE:APP"]),
        ("nowhere:app", ["no module 'nowhere'"]),
        ("nowhere.tasks:app", ["no module 'nowhere'"]),
        ("shop:missing", ["shop has no 'missing'"]),
        ("shop:number", ["number is a int, not a pgq.App"]),
        ("shop:nothing", ["the app has no handlers"]),
        ("syntax:app", ["syntax does not import: SyntaxError: invalid syntax", "(syntax.py:2)"]),
        ("missing:app", ["ModuleNotFoundError", "not_installed_anywhere", "(missing.py:2)"]),
        ("broken:app", ["ZeroDivisionError: division by zero", "(broken.py:2)"]),
        ("leaving:app", ["SystemExit: bye", "(leaving.py:2)"]),
        ("hostile:app", ["ValueError: a\\npgq: all is well\\x1b[2J", "(hostile.py:1)"]),
        ("twice:app", ["kind greet has two handlers", "(twice.py:"]),
    ],
)
def test_an_app_that_cannot_be_loaded_is_one_line(
    name: str, words: list[str], shop: Path, pgq: Run
) -> None:
    ended = pgq("worker", "--app", name, dsn="host=/nowhere", cwd=shop)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("pgq: ")
    assert ended.err.count("\n") == 1
    for word in words:
        assert word in ended.err


def test_debug_shows_where_an_app_broke(shop: Path, pgq: Run) -> None:
    ended = pgq("worker", "--app", "broken:app", dsn="host=/nowhere", cwd=shop, PGQ_DEBUG="1")
    assert ended.code == 2
    assert "return 1 / 0" in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give either an app"),
        (["--app", "shop:app", "--exec", "true"], "give either an app"),
        (["--exec", "true", "-c", "0"], "concurrency"),
        (["--exec", "true", "--grace", "-5s"], "--grace: duration"),
        (["--exec", "true", "--poll", "0s"], "poll"),
        (["--app", "shop:app", "--kind", "nope"], "no handler for kind 'nope'"),
        (["--exec", "true", "--log-format", "xml"], "'text', 'json'"),
    ],
)
def test_bad_options_are_refused_before_a_database_is_asked(
    arguments: list[str], words: str, shop: Path, pgq: Run
) -> None:
    ended = pgq("worker", *arguments, dsn="host=/nowhere", cwd=shop)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1
    assert words in ended.err


def test_a_worker_runs_the_jobs_of_an_app_in_the_current_directory(
    db: str, shop: Path, pgq: Run
) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        add_job(conn, 1, queue="greetings", kind="greet", payload={"name": "Zoë"}, **DUE)
        add_job(conn, 2, kind="other", **DUE)
        ended = pgq("worker", "--app", "shop:app", "--drain", "--kind", "greet", dsn=db, cwd=shop)
        assert (ended.code, ended.out) == (0, ""), ended.err
        found = conn.execute("select id, status, result from pgq.jobs order by id").fetchall()
    assert found == [(1, "done", "Hello Zoë"), (2, "pending", None)]


DUE = {"scheduled_at": "2020-01-01T00:00:00Z"}


def test_a_worker_is_told_by_variables_too(db: str, shop: Path, pgq: Run) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        for job_id, queue in enumerate(["one", "two", "three"], start=1):
            add_job(conn, job_id, queue=queue, kind="other", **DUE)
        ended = pgq(
            "worker", "--drain", dsn=db, cwd=shop, PGQ_APP="shop:app", PGQ_QUEUES="one two",
            PGQ_CONCURRENCY="3", PGQ_LOG_FORMAT="json",
        )  # fmt: skip
        assert ended.code == 0, ended.err
        found = conn.execute("select queue, status from pgq.jobs order by id").fetchall()
    assert found == [("one", "done"), ("two", "done"), ("three", "pending")]
    assert json.loads(ended.err.splitlines()[0])["event"] == "worker started"


def test_a_worker_runs_a_command_for_each_job(db: str, tmp_path: Path, pgq: Run) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        add_job(conn, 1, kind="print", payload={"n": 1}, **DUE)
        command = 'cat > "$PGQ_KIND-$PGQ_JOB_ID"'
        ended = pgq("worker", "--exec", command, "--drain", dsn=db)
        assert (ended.code, ended.out) == (0, ""), ended.err
    assert json.loads((tmp_path / "print-1").read_text()) == {"n": 1}


LAST_WORDS = """
import os, signal, pgq

app = pgq.App()

@app.job("die")
def die():
    print("printed before")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_a_handler_printed_is_there_although_its_worker_was_killed(
    unbuffered: str, db: str, tmp_path: Path, pgq: Run
) -> None:
    (tmp_path / "last.py").write_text(LAST_WORDS)
    with psycopg.connect(db, autocommit=True) as conn:
        add_job(conn, 1, kind="die", **DUE)
    ended = pgq("worker", "--app", "last:app", dsn=db, PYTHONUNBUFFERED=unbuffered)
    assert (ended.code, ended.out) == (-9, "printed before\n"), ended.err
