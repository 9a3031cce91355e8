"""A worker that cannot start says in one line why, and writes nothing."""

import psycopg
import pytest

from tests.support import jobs
from tests.support.jobs import Connection
from tests.support.workers import run_worker


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--app", "tests.worker.bare:app"], 2, "no handlers"),
        (["--app", "tests.worker.nowhere:app"], 2, "tests.worker.nowhere"),
        (["--app", "tests.worker.handlers:app", "--kind", "none"], 2, "no handler for kind 'none'"),
        (["--exec", "true", "-c", "0"], 2, "concurrency"),
        ([], 2, "--app"),
    ],
)
def test_bad_options_are_refused(
    shared: str, queue: Connection, arguments: list[str], code: int, words: str
) -> None:
    ended = run_worker(*arguments, dsn=shared)

    assert (ended.returncode, ended.stdout) == (code, "")
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert jobs.value(queue, "select count(*) from pgq.workers") == 0


def test_a_server_that_is_not_there_is_named(tmp_path: object) -> None:
    ended = run_worker("--exec", "true", dsn=f"host={tmp_path} dbname=shop password=secret")

    assert (ended.returncode, ended.stdout) == (3, "")
    assert f"cannot connect to shop at {tmp_path}:5432" in ended.stderr
    assert "secret" not in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_database_without_the_schema_is_told_of(blank: str) -> None:
    ended = run_worker("--exec", "true", dsn=blank)

    assert (ended.returncode, ended.stdout) == (3, "")
    assert "run pgq install" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_schema_of_a_later_program_is_left_alone(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("insert into pgq.migrations (number, name, checksum) values (999, 'new', '')")
        ended = run_worker("--exec", "true", dsn=db)

        assert (ended.returncode, ended.stdout) == (3, "")
        assert "newer than this program" in ended.stderr
        assert jobs.value(conn, "select count(*) from pgq.workers") == 0
