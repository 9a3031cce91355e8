"""Where the server lives: the rules of `layout`, and the folders they lead to."""

import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from pgq.embedded.layout import SOCKET_LIMIT, layout_for
from pgq.errors import UsageError
from tests.embedded.person import Failed, Person

UID = os.geteuid() or 65534


def test_a_normal_user_has_it_in_the_data_home() -> None:
    assert layout_for(UID, {"HOME": "/h"}).home == Path("/h/.local/share/pgq-toolkit")
    both = {"HOME": "/h", "XDG_DATA_HOME": "/x"}
    assert layout_for(UID, both).home == Path("/x/pgq-toolkit")
    relative = {"HOME": "/h", "XDG_DATA_HOME": "x"}
    assert layout_for(UID, relative).home == Path("/h/.local/share/pgq-toolkit")


def test_root_has_it_in_the_system_folder_whatever_its_home_is() -> None:
    environment = {"HOME": "/home/ann", "XDG_DATA_HOME": "/home/ann/data"}
    assert layout_for(0, environment).home == Path("/var/lib/pgq-toolkit")


@pytest.mark.parametrize("uid", [0, UID])
def test_one_variable_puts_it_elsewhere(uid: int) -> None:
    environment = {"HOME": "/h", "PGQ_SERVER_HOME": "/srv/pgq"}
    layout = layout_for(uid, environment)
    assert layout.home == Path("/srv/pgq")
    assert layout.url() == "postgresql://postgres@/pgq?host=%2Fsrv%2Fpgq%2Frun&port=5432"


@pytest.mark.parametrize("chosen", ["srv", '/srv/"', "/srv/$HOME", "/srv/`id`", "/s\\", "/s\nt"])
def test_a_place_that_cannot_be_used_is_a_usage_error(chosen: str) -> None:
    with pytest.raises(UsageError, match=r"PGQ_SERVER_HOME") as raised:
        layout_for(UID, {"PGQ_SERVER_HOME": chosen})
    assert "\n" not in str(raised.value)


def test_an_unset_home_is_looked_up() -> None:
    assert str(layout_for(UID, {}).home).endswith("/.local/share/pgq-toolkit")


def test_a_user_without_any_home_is_told_what_to_set() -> None:
    with pytest.raises(UsageError, match="user id 4242424 has no home folder: set HOME or"):
        layout_for(4242424, {})


def test_a_comma_at_which_libpq_would_split_the_address_is_not_in_it() -> None:
    layout = layout_for(UID, {"PGQ_SERVER_HOME": "/srv/a,b"})
    assert layout.home == Path("/srv/a,b")
    assert "%2C" not in layout.url()


@pytest.mark.parametrize("length", range(60, 120))
def test_a_socket_path_is_never_longer_than_the_kernel_takes(length: int) -> None:
    layout = layout_for(UID, {"PGQ_SERVER_HOME": "/" + "x" * length})
    assert len(os.fsencode(layout.socket)) <= (103 if sys.platform == "darwin" else 107)
    in_home = len(f"{layout.home}/run/.s.PGSQL.5432") <= SOCKET_LIMIT
    assert (layout.sockets.parent == layout.home) is in_home


def test_two_deep_homes_have_two_socket_folders() -> None:
    deep = [layout_for(UID, {"PGQ_SERVER_HOME": "/" + "x" * n}).sockets for n in (120, 121)]
    assert deep[0] != deep[1]


def deepen(user: Person) -> Path:
    """Give a person a home too deep for a socket; the folder that stands in for it."""
    deep = user.folder / ("d" * 80) / "server"
    user.environment["PGQ_SERVER_HOME"] = str(deep)
    return layout_for(user.entry.pw_uid, {"PGQ_SERVER_HOME": str(deep)}).sockets


def test_a_deep_home_gets_a_private_socket_folder_in_tmp(user: Person) -> None:
    sockets = deepen(user)
    user.do("ensure")
    assert user.query("select 1") == [[1]]
    info = sockets.lstat()
    assert stat.S_IMODE(info.st_mode) == 0o700
    assert info.st_uid == user.account.pw_uid
    user.do("stop")
    sockets.rmdir()


def test_a_socket_folder_that_is_not_ours_is_refused_and_never_connected_to(
    user: Person,
) -> None:
    sockets = deepen(user)
    sockets.mkdir(mode=0o755)
    os.chown(sockets, user.entry.pw_uid, user.entry.pw_gid)
    try:
        with socket.socket(socket.AF_UNIX) as trap:
            trap.bind(str(sockets / ".s.PGSQL.5432"))
            (sockets / ".s.PGSQL.5432").chmod(0o777)
            trap.listen()
            trap.setblocking(False)
            with pytest.raises(Failed, match=r"Refused: the folder .*pgq-\d+-"):
                user.do("ensure")
            with pytest.raises(BlockingIOError):
                trap.accept()
    finally:
        (sockets / ".s.PGSQL.5432").unlink()
        sockets.rmdir()


def test_a_link_in_place_of_the_socket_folder_is_refused(user: Person) -> None:
    sockets = deepen(user)
    sockets.symlink_to(user.folder)
    try:
        with pytest.raises(Failed, match=r"Refused: .* is not a folder"):
            user.do("ensure")
    finally:
        sockets.unlink()
