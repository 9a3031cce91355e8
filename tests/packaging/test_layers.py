"""SQL is spoken in `pgq` and `sql` alone. Import contracts are in pyproject.toml."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATEMENT = re.compile(
    r"\b(select\s.+\sfrom|insert\s+into|update\s+\S+\s+set|delete\s+from|create\s+table"
    r"|drop\s+table|truncate\s+table|notify\s+pgq|listen\s+pgq)\b",
    re.IGNORECASE | re.DOTALL,
)


def texts(source: str) -> Iterator[str]:
    """Every string in the source that is not a docstring."""
    tree = ast.parse(source)
    docstrings = {
        node.value
        for parent in ast.walk(tree)
        if isinstance(parent, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for node in parent.body[:1]
        if isinstance(node, ast.Expr)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if node not in docstrings:
                yield text


def modules() -> list[Path]:
    return sorted(path for name in ("pgq_cli", "pgq_tui") for path in (ROOT / name).rglob("*.py"))


@pytest.mark.parametrize("module", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_command_line_and_the_interface_hold_no_sql(module: Path) -> None:
    assert [text for text in texts(module.read_text()) if STATEMENT.search(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "select id from pgq.jobs",
        "INSERT INTO pgq.jobs (kind) values ('a')",
        "update pgq.jobs set status = 'done'",
        "delete from pgq.jobs",
    ],
)
def test_a_statement_is_recognised(text: str) -> None:
    assert STATEMENT.search(text)


@pytest.mark.parametrize("text", ["Select a job", "update the schema", "jobs from a file"])
def test_plain_words_are_no_statement(text: str) -> None:
    assert not STATEMENT.search(text)
