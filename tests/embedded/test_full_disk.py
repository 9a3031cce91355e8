"""A disk that is really full: a small memory disk under the server's folder."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.embedded.conftest import mount, unmount
from tests.embedded.person import Failed, Person


@pytest.fixture
def cramped(person: Person) -> Iterator[Person]:
    """Somebody whose folder is on a disk that can hold almost nothing yet."""
    mount(person.folder, "4m")
    os.chown(person.folder, person.entry.pw_uid, person.entry.pw_gid)
    try:
        yield person
    finally:
        person.kill()
        unmount(person.folder)


def resize(person: Person, size: str) -> None:
    """Make the disk larger."""
    command = ["mount", "-o", f"remount,size={size}", str(person.folder)]
    subprocess.run(command, check=True)


def test_a_full_disk_leaves_nothing_half_done_and_loses_nothing(cramped: Person) -> None:
    with pytest.raises(Failed) as while_copying:
        cramped.do("ensure")
    assert "No space left on device; free about 100 MB on that disk" in str(while_copying.value)
    assert list((cramped.home / "programs").iterdir()) == []

    resize(cramped, "60m")
    with pytest.raises(Failed) as in_initdb:
        cramped.do("ensure")
    assert "cannot make the data folder" in str(in_initdb.value)
    assert "No space left on device; free some space on the disk of" in str(in_initdb.value)
    assert not cramped.data.exists()
    assert list(cramped.home.glob("new-*")) == []

    resize(cramped, "200m")
    cramped.do("ensure")
    cramped.query("create table kept as select 7 as n")
    cramped.do("stop")
    ballast = fill(cramped)
    with pytest.raises(Failed) as at_start:
        cramped.do("ensure")
    assert "No space left on device; free " in str(at_start.value)
    ballast.unlink()
    cramped.do("ensure")
    assert cramped.query("select n from kept") == [[7]]


def fill(person: Person) -> Path:
    """Take the last byte of the disk, with a file."""
    ballast = person.folder / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * 65536)
    return ballast
