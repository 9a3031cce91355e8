"""Where a private server lives and the address it answers on: names and rules, nothing is made.

The place follows from the user and the environment alone, never from what is running, so that
every command of one user, in any shell, finds the same server.
"""

import hashlib
import os
import pwd
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pgq.errors import UsageError

HOME_VARIABLE = "PGQ_SERVER_HOME"
ROOT_HOME = Path("/var/lib/pgq-toolkit")
FOLDER = "pgq-toolkit"
DATABASE = "pgq"
# Not `pgq`: a role named like the schema would put that schema on its own search_path.
SUPERUSER = "postgres"
# Only names the socket file; nothing listens on a network.
PORT = 5432
# The longest socket path the kernel takes, without the closing zero.
SOCKET_LIMIT = 103 if sys.platform == "darwin" else 107
# initdb puts the path of its programs, in double quotes, on command lines for a shell.
UNSAFE = frozenset('"$`\\\n')


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The folders and files of one private server."""

    home: Path
    sockets: Path

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def programs(self) -> Path:
        return self.home / "programs"

    @property
    def log(self) -> Path:
        return self.home / "server.log"

    @property
    def lock(self) -> Path:
        return self.home / "lock"

    @property
    def access(self) -> Path:
        return self.home / "pg_hba.conf"

    @property
    def identities(self) -> Path:
        return self.home / "pg_ident.conf"

    @property
    def socket(self) -> Path:
        return self.sockets / f".s.PGSQL.{PORT}"

    def url(self, database: str = DATABASE) -> str:
        """The address; it holds no secret, since the kernel vouches for who connects.

        The port is spelt out because a PGPORT of the caller would replace a missing one.
        """
        folder = quote(os.fsencode(self.sockets), safe="")
        return f"postgresql://{SUPERUSER}@/{database}?host={folder}&port={PORT}"


def locate() -> Layout:
    """The layout of the calling user's server."""
    return layout_for(os.geteuid(), os.environ)


def layout_for(uid: int, environment: Mapping[str, str]) -> Layout:
    """The layout for a user: $PGQ_SERVER_HOME, else the system folder for root, else XDG's.

    Raises UsageError for a folder that cannot be used as one.
    """
    if chosen := environment.get(HOME_VARIABLE):
        home = Path(chosen)
    elif uid == 0:
        home = ROOT_HOME
    else:
        home = _xdg_data_home(uid, environment) / FOLDER
    if not home.is_absolute():
        raise UsageError(f"{HOME_VARIABLE}={home} is not an absolute path: give the whole path")
    home = Path(os.path.realpath(home))
    if UNSAFE & set(str(home)):
        raise UsageError(
            f'the folder {str(home)!r} has one of " $ ` \\ or a line break in its name, which '
            f"PostgreSQL's initdb cannot take: set {HOME_VARIABLE} to another folder"
        )
    return Layout(home=home, sockets=_socket_folder(home, uid))


def _xdg_data_home(uid: int, environment: Mapping[str, str]) -> Path:
    chosen = Path(environment.get("XDG_DATA_HOME", ""))
    if chosen.is_absolute():  # the specification says to ignore a relative one
        return chosen
    return Path(environment.get("HOME") or _home_of(uid)) / ".local" / "share"


def _home_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        raise UsageError(
            f"user id {uid} has no home folder: set HOME or {HOME_VARIABLE} to a folder of its own"
        ) from None


def _socket_folder(home: Path, uid: int) -> Path:
    """A folder in the home, or a short one in /tmp where its path cannot be an address.

    That is one too long for the kernel, or with a comma, at which libpq would split it. Not in
    $XDG_RUNTIME_DIR: it is unset in cron and removed at logout, under a running server. Not in
    $TMPDIR: it differs from shell to shell.
    """
    folder = home / "run"
    address = os.fsencode(folder / f".s.PGSQL.{PORT}")
    if len(address) <= SOCKET_LIMIT and b"," not in address:
        return folder
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return Path("/tmp") / f"pgq-{uid}-{digest}"
