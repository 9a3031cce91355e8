"""What an import costs: nobody pays for a driver or a terminal library that they do not use."""

import pytest

from tests.support.processes import run_python

HELP = """
import sys
from pgq_cli.app import main
sys.argv = ["pgq", "--help"]
try:
    main()
except SystemExit as done:
    assert not done.code, done.code
"""


def loaded_after(code: str, *suspects: str) -> set[str]:
    """Which of these packages are loaded once the code has run in an interpreter of its own."""
    report = f"print('loaded', *sorted(set({suspects!r}) & set(sys.modules)))"
    return set(run_python(f"import sys\n{code}\n{report}").splitlines()[-1].split()[1:])


def test_importing_pgq_loads_no_driver() -> None:
    assert loaded_after("import pgq", "psycopg", "asyncio", "typer", "pydantic") == set()


def test_the_help_loads_neither_driver_nor_terminal_libraries() -> None:
    assert loaded_after(HELP, "psycopg", "textual", "rich", "pydantic") == set()


@pytest.mark.parametrize("package", ["pgq", "pgq_cli", "pgq_tui"])
def test_a_package_imports_alone(package: str) -> None:
    assert loaded_after(f"import {package}", package) == {package}
