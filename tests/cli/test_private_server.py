"""Where no database is named: the private server, or a refusal. The server itself is tested in
tests/embedded."""

import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def home(pgq: Run) -> Iterator[Path]:
    """Where a private server may be: a short path that its account can reach."""
    folder = Path(tempfile.mkdtemp(prefix="pgq-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder / "server"
    if (folder / "server").exists():
        pgq("server", "stop", PGQ_SERVER_HOME=str(folder / "server"))
    shutil.rmtree(folder)


def test_without_a_database_the_private_server_is_used_and_said_so(home: Path, pgq: Run) -> None:
    run = partial(pgq, PGQ_SERVER_HOME=str(home))
    first, second = run("enqueue", "a"), run("enqueue", "a")
    assert (first.code, first.out, second.out) == (0, "1\n", "2\n")
    line = "pgq: no database is named: using the private server (pgq server status)"
    assert first.err == f"{line}, the schema was installed\n"
    assert second.err == f"{line}\n"
    assert run("worker", "--exec", "true", "--drain", "--embedded").code == 0
    assert run("requeue", "--stuck", "--embedded").code == 0
    assert run("jobs", "--output", "csv").out.count("done") == 2


def test_a_service_does_not_work_on_the_private_server_unasked(home: Path, pgq: Run) -> None:
    ended = pgq("worker", "--exec", "true", PGQ_SERVER_HOME=str(home))
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.count("\n") == 1
    assert "no database is named" in ended.err
    assert "--embedded" in ended.err
    assert not home.exists()


def test_a_health_check_is_not_told_of_an_option_that_it_does_not_have(
    home: Path, pgq: Run
) -> None:
    ended = pgq("workers", "--check", PGQ_SERVER_HOME=str(home))
    assert (ended.code, ended.out) == (3, "")
    named = "name one with --dsn, PGQ_DSN or DATABASE_URL"
    assert ended.err == f"pgq: no database is named: {named}\n"
    assert not home.exists()


def test_a_named_database_and_the_private_server_exclude_each_other(pgq: Run) -> None:
    ended = pgq("--dsn", "host=/nowhere", "worker", "--exec", "true", "--embedded")
    assert (ended.code, ended.err) == (2, "pgq: give --dsn or --embedded, not both\n")


@pytest.mark.parametrize("variable", ["PGQ_DSN", "DATABASE_URL", "PGHOST", "PGSERVICE"])
def test_a_variable_that_names_a_database_is_never_passed_over(
    variable: str, home: Path, pgq: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "/nowhere")
    ended = pgq("jobs", PGQ_SERVER_HOME=str(home))
    assert ended.code in (2, 3)
    assert "private" not in ended.err
    assert not home.exists()
