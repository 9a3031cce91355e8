"""A private PostgreSQL server for the tests, thrown away afterwards.

What lives here starts, restarts and stops a server; databases in it are made in `databases`.
The server never runs as root, trusts only its own socket folder, and asks for a password on
the loopback address.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

from tests.support import binaries

# Durability is off: nothing here outlives a crash of the machine. A crash of the server alone
# loses nothing, so tests may kill it.
SETTINGS: Mapping[str, str] = {
    "autovacuum_naptime": "1h",
    "deadlock_timeout": "200ms",
    "fsync": "off",
    "full_page_writes": "off",
    "jit": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "100",
    "max_wal_size": "512MB",
    "search_path": "",
    "shared_buffers": "64MB",
    "synchronous_commit": "off",
    "timezone": "UTC",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}
DURABLE: Mapping[str, str] = {
    "autovacuum_naptime": "10s",
    "deadlock_timeout": "1s",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
}
"""As a server in production has it, for what is to show what a crash of it loses."""

ACCESS = """\
local all all trust
local replication all trust
host all all 127.0.0.1/32 scram-sha-256
"""

# Ends the server when the process that holds the other end of its standard input is gone, so
# that a killed test run leaves nothing behind. The pid file goes as the server ends; asking for
# the process instead would wait for init to bury it.
GUARD = """
read -r _
kill -QUIT "$(head -n 1 "$1/postmaster.pid")"
for _ in 1 2 3 4 5 6 7 8 9; do [ -e "$1/postmaster.pid" ] && sleep 0.1; done
rm -rf "$1" "$2"
"""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A running server: where it listens and the programs that belong to it."""

    prefix: Path
    home: Path
    data: Path
    port: int
    account: str | None
    environment: Mapping[str, str]

    def dsn(self, database: str = "postgres") -> str:
        """A superuser's way in over the socket, without a password."""
        return f"postgresql://postgres@/{database}?host={self.home}&port={self.port}"

    @property
    def started(self) -> bool:
        """Whether there is a server."""
        return (self.data / "postmaster.pid").exists()

    def restart(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop and start on the same address; `immediate` is a crash."""
        self.stop(mode)
        self.start()

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        self._run("pg_ctl", "stop", "--wait", "--silent", "--mode", mode)

    def start(self) -> None:
        """Return once the server takes connections."""
        log = str(self.home / "log")
        self._run("pg_ctl", "start", "--wait", "--silent", "--log", log)

    def promote(self) -> None:
        """Return once this standby takes writes."""
        self._run("pg_ctl", "promote", "--wait", "--silent")

    def initialise(self, settings: Mapping[str, str]) -> None:
        """Make the data folder; its settings go into the file, so that a restart keeps them."""
        self._run(
            "initdb", "--no-sync", "--no-instructions", "--username=postgres",
            "--encoding=UTF8", "--locale=C", "--auth=trust",
        )  # fmt: skip
        self._configure(settings)
        (self.data / "pg_hba.conf").write_text(ACCESS)

    def follow(self, primary: "Cluster") -> None:
        """Make the data folder as a copy of a running server's, to be its standby."""
        self._run(
            "pg_basebackup", "--no-sync", "--checkpoint=fast", "--write-recovery-conf",
            f"--host={primary.home}", f"--port={primary.port}", "--username=postgres",
        )  # fmt: skip
        self._configure({})

    def _configure(self, settings: Mapping[str, str]) -> None:
        here = {"port": str(self.port), "unix_socket_directories": str(self.home)}
        lines = [f"{name} = '{value}'\n" for name, value in {**settings, **here}.items()]
        with (self.data / "postgresql.conf").open("a") as config:
            config.writelines(lines)

    def _run(self, program: str, *arguments: str) -> None:
        """Run one of the server's programs as its account; its words are shown when it fails."""
        command = [str(self.prefix / "bin" / program), "--pgdata", str(self.data), *arguments]
        done = subprocess.run(
            command, check=False, cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
            text=True, env={**_environment(), **self.environment}, **_identity(self.account),
        )  # fmt: skip
        if done.returncode:
            log = self.home / "log"
            words = log.read_text()[-2000:] if log.exists() else ""
            raise RuntimeError(f"{program} failed: {done.stdout}{done.stderr}{words}")


@contextmanager
def running(
    version: int,
    settings: Mapping[str, str] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    durable: bool = False,
) -> Iterator[Cluster]:
    """A new server of this major version, gone when the block ends, however it ends.

    Settings given here come on top of those that all test servers have. `environment`: variables
    for the server's processes. A durable one is on disk, and syncs every commit to it.
    """
    with placed(version, environment, durable=durable) as cluster:
        cluster.initialise({**SETTINGS, **(DURABLE if durable else {}), **(settings or {})})
        cluster.start()
        yield cluster


@contextmanager
def placed(
    version: int, environment: Mapping[str, str] | None = None, *, durable: bool = False
) -> Iterator[Cluster]:
    """A server that is not made yet, only its place; whatever is made there goes with the block."""
    programs = binaries.find(version)
    account = _account()
    with _folders(account, "/var/tmp" if durable else _fast_folder()) as (home, data):
        prefix = _runnable(programs, home, account)
        yield Cluster(
            prefix=prefix, home=home, data=data, port=_free_port(), account=account,
            environment=environment or {},
        )  # fmt: skip


@contextmanager
def _folders(account: str | None, place: str) -> Iterator[tuple[Path, Path]]:
    """Private folders for socket and data, guarded: both and the server go with the block."""
    # Not below TMPDIR, which may be too long for a socket's path.
    home = Path(tempfile.mkdtemp(prefix="pgq-test-", dir="/tmp"))
    data = Path(tempfile.mkdtemp(prefix="pgq-test-", dir=place))
    guard = ["/bin/sh", "-c", GUARD, "guard", str(data), str(home)]
    with subprocess.Popen(
        guard, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as guarding:
        try:
            if account:
                shutil.chown(home, account)
                shutil.chown(data, account)
            yield home, data
        finally:
            guarding.communicate()


def _runnable(prefix: Path, home: Path, account: str | None) -> Path:
    """The programs, in a place from which the server's account can run them.

    A virtual environment in a private home is closed to another account: then a copy in `home`.
    The libraries of a wheel are found by their place relative to the programs.
    """
    if _can_run(prefix / "bin" / "postgres", account):
        return prefix
    package = prefix.parent
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, home / libraries.name)
    return shutil.copytree(prefix, home / package.name / prefix.name, symlinks=True)


def _can_run(program: Path, account: str | None) -> bool:
    try:
        asked = [str(program), "--version"]
        subprocess.run(asked, cwd="/", check=True, capture_output=True, **_identity(account))
    except PermissionError:
        return False
    return True


def _account() -> str | None:
    """Whom the server runs as when we are root: PostgreSQL refuses root itself."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class Identity(TypedDict, total=False):
    user: str
    group: int
    extra_groups: list[int]


def _identity(account: str | None) -> Identity:
    """What makes `subprocess` change to this account, groups included."""
    if account is None:
        return {}
    return {"user": account, "group": pwd.getpwnam(account).pw_gid, "extra_groups": []}


def _environment() -> dict[str, str]:
    """Ours without PG*: a variable meant for another server must not reach this one."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def _fast_folder() -> str:
    """Memory where it has room: there a database is cloned in 6 ms, on a busy disk in 300."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 2 << 30
    return str(memory) if roomy else "/tmp"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
