"""A database of one's own for a while, beside the one that a DSN names."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgq import db
from pgq.errors import Refused


@dataclass(frozen=True, slots=True)
class Scratch:
    """A database that was made for now."""

    name: str
    dsn: str

    @property
    def public_dsn(self) -> str:
        """The DSN without its secrets, to be shown."""
        given = conninfo_to_dict(self.dsn)
        return make_conninfo("", **{k: v for k, v in given.items() if "password" not in k})


@contextmanager
def database(dsn: str, *, keep: bool) -> Iterator[Scratch]:
    """A new, empty database on the server of this DSN, dropped with the block unless `keep`.

    Refused where the role may not make one.
    """
    name = f"pgq_demo_{secrets.token_hex(3)}"
    with db.connect(dsn) as admin:
        try:
            with db.driver_errors():
                admin.execute(
                    sql.SQL("create database {} template template0").format(sql.Identifier(name))
                )
        except Refused:
            raise Refused(
                "a database of its own cannot be made here, since the role may not: use another "
                "role, or another server"
            ) from None
        try:
            yield Scratch(name, make_conninfo(dsn, dbname=name))
        finally:
            if not keep:
                with db.driver_errors():
                    admin.execute(
                        sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
                    )
