"""The operating-system account that runs the server, and how a program is started as it.

PostgreSQL refuses to run as root. A normal user's server runs as that user; root's runs as an
account of its own, which is used for nothing else, owns only the data and cannot log in. It is
not `postgres`: that account may own the clusters of a system installation, and each side could
then read the other's data.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pgq.embedded.layout import HOME_VARIABLE
from pgq.errors import Refused, Unavailable

NAME = "pgq-server"
SYSTEM_PROGRAMS = "/usr/sbin:/usr/bin:/sbin:/bin"
# All that the server sees of the caller's environment: no secrets, no library path, no locale.
ENVIRONMENT = {"LC_ALL": "C", "PATH": SYSTEM_PROGRAMS}


@dataclass(frozen=True, kw_only=True)
class Account:
    """Who runs the server; `borrowed` when that is not the caller."""

    name: str
    uid: int
    gid: int
    borrowed: bool


def current() -> Account | None:
    """The account that would run the server; None when it is still to be made (root only)."""
    if os.geteuid() != 0:
        return _account(_own_entry(), borrowed=False)
    try:
        entry = pwd.getpwnam(NAME)
    except KeyError:
        return None
    _must_not_log_in(entry)
    return _account(entry, borrowed=True)


def provide() -> Account:
    """The account that runs the server, made where it is missing.

    Raises Unavailable where it cannot be made, Refused where it is not fit.
    """
    found = current()
    if found is None:
        _make()
        found = current()
    if found is None:
        raise Unavailable(f"the new account {NAME} is not visible yet: try again")
    return found


def spawn(
    account: Account, command: Sequence[str | Path], *, output: IO[bytes] | int
) -> subprocess.Popen[bytes]:
    """Start a program as the account, in a session of its own, with both outputs in one place."""
    other = account.borrowed
    try:
        return subprocess.Popen(
            command,
            user=account.uid if other else None,
            group=account.gid if other else None,
            extra_groups=[] if other else None,
            cwd="/",
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise _cannot_run(account, Path(command[0]), error) from None


def hand_over(folder: Path, account: Account) -> None:
    """Give a folder that was just made to the account."""
    if account.borrowed:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)


def _own_entry() -> pwd.struct_passwd:
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise Unavailable(
            f"user id {uid} has no account on this machine, and PostgreSQL does not run without "
            "one: add it to /etc/passwd, or set PGQ_DSN to a server"
        ) from None


def _account(entry: pwd.struct_passwd, *, borrowed: bool) -> Account:
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, borrowed=borrowed)


def _must_not_log_in(entry: pwd.struct_passwd) -> None:
    if entry.pw_uid == 0 or Path(entry.pw_shell).name not in {"nologin", "false"}:
        raise Refused(
            f"the account {NAME} can log in (uid {entry.pw_uid}, shell {entry.pw_shell}): "
            f"usermod --shell {_no_shell()} {NAME}, or remove it and let it be made"
        )


def _make() -> None:
    options = ["--system", "--user-group", "--no-create-home", "--home-dir=/nonexistent"]
    about = "--comment=private PostgreSQL of pgq"
    command = ["useradd", *options, about, f"--shell={_no_shell()}", NAME]
    try:
        done = subprocess.run(command, check=False, env=ENVIRONMENT, capture_output=True, text=True)
    except FileNotFoundError:
        reason = "useradd is not installed"
    else:
        if done.returncode == 0:
            return
        reason = done.stderr.strip().replace("\n", "; ")
    raise Unavailable(
        f"cannot make the account {NAME} ({reason}): make a system account of that name without "
        "login, or run this as a normal user"
    )


def _no_shell() -> str:
    return shutil.which("nologin", path=SYSTEM_PROGRAMS) or "/bin/false"


def _cannot_run(account: Account, program: Path, error: OSError) -> Unavailable:
    if closed := _closed_folder(account, program):
        return Unavailable(
            f"the account {account.name} cannot enter {closed}: set {HOME_VARIABLE} to a folder "
            "that every user can reach"
        )
    return Unavailable(
        f"cannot run {program} as {account.name} ({error.strerror}): is its disk mounted noexec, "
        f"or has root no right to change users? Set {HOME_VARIABLE} to a folder on another disk, "
        "or run this as a normal user"
    )


def _closed_folder(account: Account, path: Path) -> Path | None:
    """The outermost folder above a path that the account cannot enter, by its mode."""
    for folder in reversed(path.parents):
        info = folder.stat()
        owner, group = info.st_uid == account.uid, info.st_gid == account.gid
        bit = 0o100 if owner else 0o010 if group else 0o001
        if not info.st_mode & bit:
            return folder
    return None
