"""Act as another user with `pgq.embedded`: requests and answers are lines of JSON.

    acting.py UID GID FOLDER

Everything is imported before the rights are given up, because that user may be unable to read
the interpreter and its packages.
"""

import dataclasses
import json
import os
import sys
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import errors

from pgq import embedded
from pgq.errors import PgqError

VERBS = {
    "available": embedded.available,
    "ensure": embedded.ensure,
    "start": embedded.start,
    "status": embedded.status,
    "stop": embedded.stop,
    "url": embedded.url,
}


def become(uid: int, gid: int) -> None:
    """Be that user alone, for good."""
    # Loaded now because they are loaded late otherwise.
    errors.lookup("42P04")
    "a".encode("idna")
    if os.geteuid() == 0:
        os.setgroups([gid])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)


def query(url: str, statement: str) -> list[tuple[object, ...]]:
    """Rows of one statement, in a transaction of its own."""
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as conn:
        cursor = conn.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def answer(verb: str, arguments: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """The result of the verb, or its error."""
    os.environ.clear()
    os.environ.update(environment)
    try:
        result = query(*arguments) if verb == "query" else VERBS[verb]()
    except (PgqError, psycopg.Error) as error:
        return {"error": type(error).__name__, "text": str(error)}
    if isinstance(result, embedded.Status):
        return {"result": dataclasses.asdict(result)}
    return {"result": result}


if __name__ == "__main__":
    become(int(sys.argv[1]), int(sys.argv[2]))
    with suppress(KeyboardInterrupt):
        for line in sys.stdin:
            print(json.dumps(answer(**json.loads(line)), default=str), flush=True)
