"""Roles without a superuser's rights and reserves, who log in with a password over TCP."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.support.databases import wait_until

PASSWORD = "right"


@dataclass(frozen=True)
class Role:
    """A role that may work the queue, and the superuser's way to what is done to it."""

    name: str
    admin: str
    port: int

    @property
    def dsn(self) -> str:
        """Its way in."""
        return make_conninfo(
            self.admin, host="127.0.0.1", port=self.port, user=self.name, password=PASSWORD
        )

    def alter(self, change: str) -> None:
        """Change the role."""
        with psycopg.connect(self.admin, autocommit=True) as conn:
            conn.execute(f"alter role {self.name} {change}".encode())

    def terminate(self, application: str = "%") -> None:
        """End its sessions, all or those whose application_name is like this.

        In order of that name: a worker's heartbeat comes last, and finds no other to beat over.
        """
        with psycopg.connect(self.admin, autocommit=True) as conn:
            ended = conn.execute(
                "select pid, pg_terminate_backend(pid) from (select pid from pg_stat_activity"
                " where usename = %s and application_name like %s order by application_name) as s",
                (self.name, application),
            ).fetchall()
            gone = "select count(*) = 0 from pg_stat_activity where pid = any (%s)"
            wait_until(conn, gone, [pid for pid, _ in ended])


@contextmanager
def role(name: str, *, dsn: str, port: int) -> Iterator[Role]:
    """A role of this name while the block runs, in the database of this superuser's DSN."""
    quoted, password = sql.Identifier(name), sql.Literal(PASSWORD)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(sql.SQL("create role {} login password {}").format(quoted, password))
        conn.execute(sql.SQL("grant usage on schema pgq to {}").format(quoted))
        conn.execute(sql.SQL("grant all on all tables in schema pgq to {}").format(quoted))
    made = Role(name, dsn, port)
    try:
        yield made
    finally:
        with psycopg.connect(dsn, autocommit=True) as conn:
            made.terminate()
            conn.execute(sql.SQL("drop owned by {}").format(quoted))
            conn.execute(sql.SQL("drop role {}").format(quoted))
