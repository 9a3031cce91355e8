"""`--help`, no arguments, and what is no command."""

import sys

import pytest

from pgq_cli.app import COMMANDS
from pgq_cli.commands.version import program_version
from tests.cli.conftest import CHECKOUT, Here, Run
from tests.support.processes import run_python

HELP = """
import sys
from pgq_cli.app import main
sys.argv = ["pgq", {name!r}, "--help"]
assert main() == 0
print("loaded", *sorted({{"psycopg", "textual", "rich", "pydantic"}} & set(sys.modules)))
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_an_example(name: str, here: Here) -> None:
    helped = here(name, "--help")
    assert (helped.code, helped.err) == (0, "")
    if name != "server":
        assert f"\n    pgq {name}" in helped.out
        assert "Examples:" in helped.out
    assert f"Usage: pgq {name} " in helped.out
    assert "--install-completion" not in helped.out


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_loads_no_driver_and_no_terminal_library(name: str) -> None:
    printed = run_python(HELP.format(name=name), first_on_path=CHECKOUT)
    assert printed.splitlines()[-1] == "loaded"


def test_the_list_of_commands_is_the_help_of_the_program(pgq: Run) -> None:
    helped = pgq("--help")
    assert (helped.code, helped.err) == (0, "")
    for name, summary in COMMANDS.items():
        assert f"  {name:<9}{summary}" in helped.out


@pytest.mark.parametrize("group", [[], ["server"]])
def test_no_word_of_a_list_of_commands_is_cut_at_80_columns(group: list[str], pgq: Run) -> None:
    listed = pgq(*group, "--help", COLUMNS="80").out.partition("Commands:")[2]
    assert listed
    assert "..." not in listed


def test_without_a_command_the_help_is_a_usage_error(pgq: Run) -> None:
    ended = pgq()
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("Usage: pgq ")


@pytest.mark.parametrize("arguments", [["server"]])
def test_a_group_without_a_command_is_a_usage_error(arguments: list[str], pgq: Run) -> None:
    ended = pgq(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("Usage: pgq server ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["enqeue"], "Did you mean 'enqueue'"),
        (["jobs", "--nope"], "No such option: --nope"),
        (["jobs", "--dsn", "x"], "--dsn comes before the command"),
        (["--dsn"], "'--dsn' requires an argument"),
        (["jobs", "--limit", "0"], "--limit"),
        (["jobs", "--status", "lost"], "'pending', 'running'"),
        (["jobs", "--since", "yesterday"], "--since: duration 'yesterday'"),
        (["jobs", "--since", "yesterday"], "or a time such as 2030-01-31T08:00:00Z"),
        (["jobs", "--limit", "many"], "'many' is not a whole number"),
        (["jobs", "--since", "2030-01-31T08:00:00"], "has no zone"),
        (["jobs", "--output", "xml"], "'table', 'json', 'jsonl', 'csv'"),
        (["show"], "Missing argument 'ID'"),
        (["show", "one"], "'ID': 'one' is not a whole number"),
        (["requeue", "1", "one"], "'one' is not a whole number"),
        (["enqueue", "a", "--priority", "high"], "'high' is not a whole number"),
        (["requeue"], "Missing argument 'ID...': name jobs, or give --stuck"),
        (["requeue", "9", "--stuck"], "give the ids of jobs or --stuck, not both"),
        (["wait", "1", "--timeout", "soon"], "--timeout: duration 'soon'"),
        (["postgresql://app:hunter2@db/shop"], "***"),
        (["jobs\x1b[2J"], "\\x1b[2J"),
    ],
)
def test_a_usage_error_is_one_line_and_the_code_2(
    arguments: list[str], words: str, here: Here
) -> None:
    ended = here(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("pgq: ")
    assert ended.err.count("\n") == 1
    assert words in ended.err
    assert "hunter2" not in ended.err


def test_the_version_of_the_program_needs_no_database(pgq: Run) -> None:
    ended = pgq("--version")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"pgq {program_version()}\n"


def test_the_other_name_of_the_program_is_its_name_in_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pgq_cli import app

    monkeypatch.setattr(sys, "argv", ["/usr/bin/pgqctl", "jobs", "--help"])
    assert app.main() == 0
    assert capsys.readouterr().out.startswith("Usage: pgqctl jobs ")
