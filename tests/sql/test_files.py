"""Nets over all SQL files: each is used, plans, takes what its caller gives, and is pinned."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

import pgq
import pgq.calls
from pgq import _sql, db
from pgq.calls import Call
from tests.support import jobs
from tests.support.jobs import Connection

SOURCES = Path(pgq.__file__).parent
PLACEHOLDER = re.compile(r"%\((\w+)\)s(::)?")
QUERIES = sorted(file.name.removesuffix(".sql") for file in (_sql.root() / "queries").iterdir())
FUNCTIONS = [file.name for file in _sql.functions()]


def placeholders(name: str) -> set[str]:
    return {found for found, _ in PLACEHOLDER.findall(_sql.query(name))}


def nodes() -> Iterator[ast.AST]:
    for path in sorted(SOURCES.rglob("*.py")):
        yield from ast.walk(ast.parse(path.read_text()))


def builders() -> list[Callable[..., Call[Any]]]:
    """Every function of pgq.calls that makes a Call."""
    found = []
    for module in pkgutil.iter_modules(pgq.calls.__path__, "pgq.calls."):
        for _, function in inspect.getmembers(importlib.import_module(module.name), is_builder):
            if function.__module__ == module.name:
                found.append(function)
    return found


def is_builder(value: object) -> bool:
    return inspect.isfunction(value) and (
        typing.get_origin(typing.get_type_hints(value).get("return")) is Call
    )


PLAIN: Mapping[object, object] = {
    int: 1,
    str: "{}",
    bool: True,
    Any: {},
    datetime: datetime(2030, 1, 1, tzinfo=UTC),
    timedelta: timedelta(seconds=1),
}


def sample(hint: Any) -> Any:
    """Some value of this type."""
    if hint in PLAIN:
        return PLAIN[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return sample(arguments[0])
    if origin in (Sequence, list):
        return [sample(arguments[0])]
    if origin is Mapping:
        return {}
    if origin is tuple:
        return tuple(sample(argument) for argument in arguments)
    if dataclasses.is_dataclass(hint) or hasattr(hint, "_fields"):
        return hint(**{name: sample(of) for name, of in typing.get_type_hints(hint).items()})
    raise TypeError(f"no sample of {hint}")


def build(builder: Callable[..., Call[Any]]) -> Call[Any]:
    hints = typing.get_type_hints(builder)
    positional, named = [], {}
    for parameter in inspect.signature(builder).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            named[parameter.name] = sample(hints[parameter.name])
        else:
            positional.append(sample(hints[parameter.name]))
    return builder(*positional, **named)


def test_every_query_has_a_caller() -> None:
    named = {node.value for node in nodes() if isinstance(node, ast.Constant)}

    assert set(QUERIES) - named == set()


def test_every_caller_has_a_query() -> None:
    called = {
        node.args[0].value
        for node in nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Call"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }

    assert len(called) > 10
    assert called - set(QUERIES) == set()


@pytest.mark.parametrize("builder", builders(), ids=lambda builder: builder.__name__)
def test_a_call_gives_what_its_statement_takes(builder: Callable[..., Call[Any]]) -> None:
    call = build(builder)

    assert call.params.keys() == placeholders(call.name)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_one_statement_that_plans(conn: Connection, name: str) -> None:
    conn.execute("set local search_path = ''")

    nulls = dict.fromkeys(placeholders(name))
    conn.execute(sql.SQL("explain ") + db.statement(name), nulls)

    assert ";" not in re.sub("--.*", "", _sql.query(name))


@pytest.mark.parametrize("name", QUERIES)
def test_every_parameter_of_a_query_is_cast(name: str) -> None:
    assert [found for found, cast in PLACEHOLDER.findall(_sql.query(name)) if not cast] == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_file_makes_the_function_of_its_name(name: str) -> None:
    (file,) = [file for file in _sql.functions() if file.name == name]

    made = re.findall(r"^create or replace function pgq\.(\w+)\(", file.text, re.MULTILINE)
    assert made == [name]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_is_for_and_what_it_locks(name: str) -> None:
    (file,) = [file for file in _sql.functions() if file.name == name]
    header = re.match(r"(--.*\n)+", file.text)

    assert header
    assert "Locks:" in header[0]
    assert "returns table" not in file.text or "Returns" in header[0]


def test_every_function_resolves_names_the_same_way_for_every_caller(conn: Connection) -> None:
    loose = jobs.rows(
        conn,
        "select p.proname from pg_catalog.pg_proc as p"
        " where p.pronamespace = 'pgq'::regnamespace and p.prosqlbody is null"
        " and not coalesce(p.proconfig, '{}') && array['search_path=\"\"', 'search_path=']",
    )

    assert loose == []


def test_no_function_lends_its_owners_rights(conn: Connection) -> None:
    lent = jobs.rows(
        conn,
        "select proname from pg_catalog.pg_proc"
        " where pronamespace = 'pgq'::regnamespace and prosecdef",
    )

    assert lent == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_passes_the_servers_own_check(conn: Connection, name: str) -> None:
    (file,) = [file for file in _sql.functions() if file.name == name]

    conn.execute("set local search_path = ''")
    conn.execute("set local check_function_bodies = on")
    conn.execute(file.text.encode())


def test_the_transition_from_file_to_database_is_complete(conn: Connection) -> None:
    made = jobs.rows(
        conn, "select proname from pg_catalog.pg_proc where pronamespace = 'pgq'::regnamespace"
    )

    assert sorted(row["proname"] for row in made) == FUNCTIONS
