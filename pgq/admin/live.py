"""Looking at live jobs without reading the finished ones."""

from typing import Any, TypeVar

import psycopg

from pgq import db
from pgq.calls import Call, nothing

T = TypeVar("T")


def look(conn: psycopg.Connection[Any], call: Call[T]) -> T:
    """Run a statement that relies on partial indexes, so that it uses them.

    In a transaction of its own (a savepoint, if there is one), with whole-table scans avoided:
    statistics of an hour ago, when most jobs were pending, would have the planner read them all.
    """
    with db.driver_errors(), conn.transaction():
        db.run(conn, Call("prefer_indexes", {}, nothing))
        return db.run(conn, call)
