"""PgBouncer in transaction mode on a free port of the loopback address.

Like the server, it never runs as root. It lets everybody in as the server's superuser: it lives
for one test, before a server that does the same on its socket.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.databases import PATIENCE

CONFIG = """
[databases]
* = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {size}
client_login_timeout = 10
server_login_retry = {retry}
"""


class Pooler:
    """A pooler that may be ended and started again, at the same port."""

    def __init__(self, dsn: str, config: Path, *, port: int, database: str) -> None:
        """`dsn`: the server's, whose owner the pooler runs as."""
        self.dsn = make_conninfo(host="127.0.0.1", port=port, dbname=database, user="postgres")
        """The database through the pooler."""
        self._config = config
        self._port = port
        self._account = _account(str(conninfo_to_dict(dsn)["host"]))
        if self._account:
            shutil.chown(config.parent, self._account.pw_name)
            shutil.chown(config, self._account.pw_name)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return once it takes clients."""
        account = self._account
        self._process = subprocess.Popen(
            [shutil.which("pgbouncer") or "/usr/sbin/pgbouncer", "--quiet", str(self._config)],
            stdin=subprocess.DEVNULL,
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
        )
        _wait_for(self._port, self._process)

    def stop(self) -> None:
        """End it, and with it all connections."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()


@contextmanager
def pooler(dsn: str, *, size: int, retry: int = 15) -> Iterator[Pooler]:
    """A pooler before this database, with so many server connections.

    `retry`: seconds until it tries again to reach a server that refused it (15 is its default).
    """
    server = conninfo_to_dict(dsn)
    database = str(server.pop("dbname"))
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="pgq-test-", dir="/tmp") as folder:
        config = Path(folder, "pgbouncer.ini")
        settings = make_conninfo("", **server)
        config.write_text(CONFIG.format(server=settings, port=port, size=size, retry=retry))
        made = Pooler(dsn, config, port=port, database=database)
        try:
            made.start()
            yield made
        finally:
            made.stop()


@contextmanager
def pooling(dsn: str, *, size: int, retry: int = 15) -> Iterator[str]:
    """The DSN of this database through a pooler; see pooler()."""
    with pooler(dsn, size=size, retry=retry) as made:
        yield made.dsn


def _account(host: str) -> pwd.struct_passwd | None:
    """Whom it runs as when we are root: the owner of the server's socket folder, who may enter."""
    if os.geteuid() != 0:
        return None
    if host.startswith("/") and (owner := Path(host).stat().st_uid):
        return pwd.getpwuid(owner)
    return pwd.getpwnam("nobody")


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            time.sleep(0.01)
        else:
            return
    raise RuntimeError("PgBouncer does not listen")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
