"""JSON between Python and PostgreSQL: what is accepted comes back the same, all else is refused."""

import json
import math
import re
from decimal import Decimal
from typing import Any

import psycopg
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pgq.errors import PayloadError
from pgq.text import dump_json
from tests.support import jobs
from tests.support.jobs import Connection

ODD = ["\0", "\\u0000", "\ud800", "\udfff\ud800", "\u2028", '"', "\\", "é", "日本語", "🎉", ""]
TEXT = st.text(max_size=6) | st.sampled_from(ODD)
NUMBERS = (
    st.integers()
    | st.integers(-(10**400), 10**400)
    | st.floats(allow_nan=True, allow_infinity=True)
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(TEXT, children, max_size=4),
    max_leaves=12,
)


def problem(value: Any) -> str | None:
    """What no jsonb can hold, by rules written down apart from those that are tested."""
    match value:
        case str():
            return "text" if re.search("[\0\ud800-\udfff]", value) else None
        case float():
            return None if math.isfinite(value) else "number"
        case int():
            return None if abs(value) <= 1.7976931348623157e308 else "number"
        case list():
            return next(filter(None, map(problem, value)), None)
        case dict():
            return problem([*value.keys(), *value.values()])
        case _:
            return None


def exactly(text: str) -> Any:
    """JSON with its numbers as written: jsonb keeps every digit, and 1e3 comes back as 1000."""
    return json.loads(text, parse_int=Decimal, parse_float=Decimal)


# The connection is the same for all examples, and nothing is written.
@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example({"a": {"b": [1, 2, {"c": "\0"}]}})
@example({"\0": 1})
@example({"n": 10**308, "m": -(10**309)})
@example(float("nan"))
@given(VALUES)
def test_json_that_is_accepted_comes_back_the_same(conn: Connection, value: Any) -> None:
    try:
        text = dump_json(value)
    except PayloadError:
        assert problem(value) is not None
        return
    assert problem(value) is None
    stored = jobs.value(conn, "select %s::jsonb::text", text)
    assert exactly(stored) == exactly(text)
    assert json.loads(text) == value


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.text(max_size=8) | st.sampled_from(ODD))
def test_text_is_refused_just_where_the_database_refuses_it(conn: Connection, text: str) -> None:
    try:
        dump_json(text)
        refused = False
    except PayloadError:
        refused = True

    try:
        with conn.transaction():
            jobs.value(conn, "select %s::jsonb", json.dumps(text))
        refused_there = False
    except psycopg.DataError:
        refused_there = True

    assert refused == refused_there
