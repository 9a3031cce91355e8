"""`python -m examples.shop.demo [--keep]`: a day of the shop, checked.

It works in a database of its own, on the server of PGQ_DSN or else on the private one, and in a
temporary folder. Both are gone at the end unless --keep is given.
"""

import argparse
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from examples.shop.demo import verdict
from examples.shop.demo.day import Day, Mishap
from examples.shop.demo.workers import ROOT
from pgq import db, embedded
from pgq.errors import PgqError

STOP = "pgq server stop    # the private server runs until then"


def main() -> int:
    """Run the demonstration; gives the exit code, 0 if all was as it must be."""
    parser = argparse.ArgumentParser(prog="demo.sh", description="A shop's day with pgq, checked.")
    parser.add_argument("--keep", action="store_true", help="keep the database and the files")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        return _run(keep=arguments.keep)
    except PgqError as error:
        print(f"demo: {error}", file=sys.stderr)
        return error.exit_code
    except Mishap as mishap:
        print(f"demo: {mishap}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _run(*, keep: bool) -> int:
    server = os.environ.get("PGQ_DSN")
    if not server:
        server = embedded.ensure()
        print("No PGQ_DSN is set: using the private server (pgq server status).")
    with _own_database(server, keep=keep) as dsn, _own_folder(keep=keep) as folder:
        passed = _day(dsn, folder)
        if passed:
            print("\nEverything is as it must be.")
        else:
            print(
                "\nNot everything is as it must be: ./demo.sh --keep leaves all of it to look at."
            )
        if keep:
            print(f"Kept: the database, and the files in {folder}")
    if passed and not keep:
        print("Its workers have ended, its database and files are gone; --keep keeps those.")
    print(_how_to_go_on(dsn if keep else None))
    return 0 if passed else 1


def _day(dsn: str, folder: Path) -> bool:
    with db.connect(dsn, application_name="pgq demo") as conn, db.driver_errors():
        day = Day(conn, dsn, folder)
        day.open_shop()
        with day.staff(2):
            day.take_orders()
            lost = day.lose(day.workers[0])
            day.repair_mail()
            day.upload_photo()
            day.finish()
            day.close_shop()
        print(f"\n{verdict.tables(day)}\n")
        return verdict.verify(day, lost)


@contextmanager
def _own_database(server: str, *, keep: bool) -> Iterator[str]:
    name = f"pgq_demo_{secrets.token_hex(3)}"
    _execute(server, "create database {} template template0 encoding 'UTF8' locale 'C'", name)
    try:
        yield make_conninfo(server, dbname=name)
    finally:
        if not keep:
            _execute(server, "drop database {} with (force)", name)


def _execute(server: str, statement: str, name: str) -> None:
    with db.connect(server, application_name="pgq demo") as conn, db.driver_errors():
        conn.execute(sql.SQL(statement).format(sql.Identifier(name)))


@contextmanager
def _own_folder(*, keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="pgq-demo-"))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder)


def _how_to_go_on(kept: str | None) -> str:
    """What to type next, and with --keep, on which database."""
    given = bool(kept or os.environ.get("PGQ_DSN"))
    url = "$PGQ_DSN" if given else "$(pgq server url)"
    no_psql = "" if shutil.which("psql") else "    # psql: apt-get install postgresql-client"
    lines = [
        f"cd {quote(str(ROOT))}",
        f". {quote(str(Path(sys.prefix, 'bin', 'activate')))}",
        *([_export(kept)] if kept else []),
        *(["pgq install"] if given and not kept else []),
        """pgq enqueue send_email '{"to":"a@example.org"}'""",
        "pgq worker --app examples.shop:app --drain    # the message goes to ./outbox/",
        "pgq jobs",
        "pgq show ID",
        "pgq stats --output json",
        f'psql "{url}" -c "select queue, status, count(*) from pgq.jobs group by 1, 2"{no_psql}',
        *([] if os.environ.get("PGQ_DSN") else [STOP]),
    ]
    return "\nTo go on:\n" + "\n".join(f"  {line}" for line in lines)


def _export(dsn: str) -> str:
    parts = conninfo_to_dict(dsn)
    secret = "" if parts.pop("password", None) is None else "    # and the password"
    return f"export PGQ_DSN={quote(make_conninfo('', **parts))}{secret}"


if __name__ == "__main__":
    sys.exit(main())
