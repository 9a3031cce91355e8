"""What takes root to try: the account of root's server, and other people at the door."""

import os
import pwd
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded import packages
from tests.embedded.conftest import Arrive
from tests.embedded.person import Failed, Person


@pytest.fixture(scope="module")
def settled(arrive: Arrive) -> Iterator[Person]:
    """Root, who has had a server here."""
    with arrive("root") as arrived:
        arrived.do("start")
        yield arrived


@pytest.fixture
def root(settled: Person) -> Iterator[Person]:
    """The same, whose server runs."""
    settled.do("ensure")
    yield settled
    settled.environment.clear()


def knock(name: str, door: Path) -> str:
    """What happens to another user who connects to a socket: the name of the error."""
    entry = pwd.getpwnam(name)
    code = (
        "import os, socket, sys; uid, gid = int(sys.argv[1]), int(sys.argv[2]); "
        "os.setgroups([]); os.setresgid(gid, gid, gid); os.setresuid(uid, uid, uid)\n"
        "try: socket.socket(socket.AF_UNIX).connect(sys.argv[3])\n"
        "except OSError as error: print(type(error).__name__)\n"
        "else: print('let in')"
    )
    command = [sys.executable, "-c", code, str(entry.pw_uid), str(entry.pw_gid), str(door)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_account_of_roots_server_cannot_log_in_and_root_trusts_nothing_of_it(
    root: Person,
) -> None:
    account = pwd.getpwnam("pgq-server")
    assert account.pw_uid != 0
    assert Path(account.pw_shell).name in {"nologin", "false"}
    assert not Path(account.pw_dir).exists()
    assert os.getgrouplist(account.pw_name, account.pw_gid) == [account.pw_gid]
    own = {path for path in root.home.rglob("*") if path.lstat().st_uid == account.pw_uid}
    assert {path.relative_to(root.home).parts[0] for path in own} == {"data", "run"}


def test_nobody_else_reaches_roots_server_not_even_its_account(root: Person) -> None:
    door = root.home / "run" / ".s.PGSQL.5432"
    assert knock("root", door) == "let in"
    assert knock("daemon", door) == "PermissionError"
    door.parent.chmod(0o711)
    door.chmod(0o777)
    for name in ("daemon", "pgq-server"):
        other = Person(entry=pwd.getpwnam(name), folder=root.folder)
        with pytest.raises(Failed, match=r"OperationalError: .* Peer authentication failed"):
            other.alone("query", root.do("url"), "select 1")
    door.parent.chmod(0o700)


def test_nobody_else_reaches_a_normal_users_server(user: Person) -> None:
    user.do("ensure")
    door = user.home / "run" / ".s.PGSQL.5432"
    assert knock(user.entry.pw_name, door) == "let in"
    assert knock("daemon", door) == "PermissionError"
    door.parent.chmod(0o711)
    door.chmod(0o777)
    root = Person(entry=pwd.getpwnam("root"), folder=user.folder)
    with pytest.raises(Failed, match=r"OperationalError: .* Peer authentication failed"):
        root.alone("query", user.do("url"), "select 1")


def test_programs_that_the_account_cannot_read_are_copied_and_stay_closed(
    root: Person, arrive: Arrive
) -> None:
    private = root.folder / "private"
    private.mkdir(mode=0o700)
    site = packages.copy_to(private / "site")
    with arrive("root") as other:
        other.packages = site
        other.alone("ensure")
        assert other.query("select 1") == [[1]]
    assert stat.S_IMODE(private.stat().st_mode) == 0o700


def test_a_home_below_a_closed_folder_is_told_and_the_folder_stays_closed(root: Person) -> None:
    closed = root.folder / "closed"
    closed.mkdir(mode=0o700)
    root.environment["PGQ_SERVER_HOME"] = str(closed / "server")
    with pytest.raises(Failed) as raised:
        root.do("ensure")
    assert f"the account pgq-server cannot enter {closed}: set PGQ_SERVER_HOME" in str(raised.value)
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_a_home_of_somebody_else_is_refused(root: Person, user: Person) -> None:
    root.environment["PGQ_SERVER_HOME"] = str(user.folder)
    with pytest.raises(Failed, match=r"Refused: the folder .* belongs to nobody"):
        root.do("ensure")
    user.environment["PGQ_SERVER_HOME"] = str(root.folder)
    with pytest.raises(Failed, match=r"Refused: the folder .* belongs to root"):
        user.do("ensure")


def test_data_of_somebody_else_is_refused_and_left(root: Person) -> None:
    root.do("stop")
    os.chown(root.data, 0, 0)
    with pytest.raises(Failed, match=r"Refused: .* belongs to root, but the server runs as pgq-"):
        root.do("ensure")
    assert root.data.stat().st_uid == 0
    os.chown(root.data, root.account.pw_uid, root.account.pw_gid)


def test_a_home_that_cannot_be_written_is_told(user: Person) -> None:
    os.chown(user.folder, 0, 0)
    with pytest.raises(Failed, match=r"Unavailable: cannot use .*/.local: Permission denied; set"):
        user.do("ensure")


def test_a_server_whose_process_cannot_be_seen_is_not_started_again(root: Person) -> None:
    root.do("stop")
    door = root.home / "run" / ".s.PGSQL.5432"
    with socket.socket(socket.AF_UNIX) as elsewhere:
        elsewhere.bind(str(door))
        elsewhere.listen()
        with pytest.raises(Failed, match=r"Refused: a server answers at .* cannot be seen"):
            root.do("start")
        assert door.is_socket()
    door.unlink()
