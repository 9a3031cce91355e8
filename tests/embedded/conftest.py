"""People with a private server, each in a folder of their own that is gone after the test.

Run as root, the tests act as root, whose server has an account of its own (made on the first
run, as the product does), and as `nobody` for the normal user. Run as a normal user they act as
that user, and what takes root to try is not collected; the header says so.
"""

import os
import pwd
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path

import pytest

from tests.embedded import packages
from tests.embedded.person import Person, until

ROOT = os.geteuid() == 0
USER = "nobody" if ROOT else pwd.getpwuid(os.geteuid()).pw_name
PEOPLE = ["root", USER] if ROOT else [USER]

# Ends whatever runs in a folder or has it on its command line, and removes it, once nothing holds
# the other end of the guard's standard input: also when the tests were killed.
GUARD = """
read -r _
users() {
    printf %s/ "$1" | grep -slaF -f - /proc/[0-9]*/cmdline
    find /proc -maxdepth 2 -path '/proc/[0-9]*/cwd' -lname "$1/*" 2>/dev/null
}
tries=100
while found=$(users "$1"); grep -qF "$1" /proc/self/mounts || [ "$found" ]; do
    [ $((tries -= 1)) -gt 0 ] || break
    for process in $found; do
        process=${process#/proc/}
        kill -KILL "${process%/*}" 2>/dev/null
    done
    umount -R "$1" 2>/dev/null || sleep 0.1
done
rm -rf "$1"
"""

Arrive = Callable[[str], AbstractContextManager[Person]]


@cache
def can_mount() -> bool:
    """Whether memory disks can be had here."""
    with tempfile.TemporaryDirectory() as folder:
        return ROOT and mount(Path(folder), "4m") and unmount(Path(folder))


def mount(folder: Path, size: str) -> bool:
    """Put a memory disk in place of a folder."""
    command = ["mount", "-t", "tmpfs", "-o", f"mode=755,size={size}", "none", str(folder)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def unmount(folder: Path) -> bool:
    """Take a memory disk away again, once the last process of a killed server has left it."""
    command = ["umount", str(folder)]
    until(lambda: subprocess.run(command, check=False, capture_output=True).returncode == 0)
    return True


collect_ignore: list[str] = []
if not ROOT:
    collect_ignore.append("test_as_root.py")
if not can_mount():
    collect_ignore.append("test_full_disk.py")


def pytest_report_header() -> str:
    """Say what this machine cannot try."""
    left_out = f", left out: {' '.join(collect_ignore)}" if collect_ignore else ""
    return f"embedded server: as {' and '.join(PEOPLE)}{left_out}"


@pytest.fixture(scope="session")
def streets() -> Iterator[Path]:
    """A folder that everybody can reach, in memory where possible, since servers write a lot."""
    folder = Path(tempfile.mkdtemp(prefix="pgq-", dir="/tmp"))
    command = ["/bin/sh", "-c", GUARD, "guard", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
        if can_mount():
            mount(folder, "2g")
        folder.chmod(0o755)
        yield folder


@pytest.fixture(scope="session")
def arrive(streets: Path) -> Arrive:
    """Make a user of the machine a person with an empty folder that only they can write."""
    lent = packages.copy_to(streets / "packages") if ROOT and packages.closed() else None

    @contextmanager
    def arrive(name: str) -> Iterator[Person]:
        folder = Path(tempfile.mkdtemp(dir=streets))
        folder.chmod(0o755)
        entry = pwd.getpwnam(name)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
        person = Person(entry=entry, folder=folder, packages=lent)
        try:
            yield person
        finally:
            person.leave()

    return arrive


@pytest.fixture(params=PEOPLE)
def person(request: pytest.FixtureRequest, arrive: Arrive) -> Iterator[Person]:
    """Somebody who never had a server: root and a normal user in turn."""
    with arrive(request.param) as arrived:
        yield arrived


@pytest.fixture
def user(arrive: Arrive) -> Iterator[Person]:
    """A normal user who never had a server, for what is the same for all."""
    with arrive(USER) as arrived:
        yield arrived


@pytest.fixture(scope="session", params=PEOPLE)
def home_owner(request: pytest.FixtureRequest, arrive: Arrive) -> Iterator[Person]:
    """Somebody who has had a server: root and a normal user in turn."""
    with arrive(request.param) as arrived:
        arrived.do("start")
        yield arrived


@pytest.fixture
def host(home_owner: Person) -> Iterator[Person]:
    """The same, whose server runs."""
    home_owner.do("ensure")
    yield home_owner
    home_owner.environment.clear()
