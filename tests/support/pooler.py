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


@contextmanager
def pooling(dsn: str, *, size: int, retry: int = 15) -> Iterator[str]:
    """The DSN of this database through a pooler with so many server connections.

    `retry`: seconds until it tries again to reach a server that refused it (15 is its default).
    """
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    server = conninfo_to_dict(dsn)
    database = str(server.pop("dbname"))
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="pgq-test-", dir="/tmp") as folder:
        config = Path(folder, "pgbouncer.ini")
        settings = make_conninfo("", **server)
        config.write_text(CONFIG.format(server=settings, port=port, size=size, retry=retry))
        account = _account(str(server["host"]))
        if account:
            shutil.chown(folder, account.pw_name)
            shutil.chown(config, account.pw_name)
        with subprocess.Popen(
            [program, "--quiet", str(config)],
            stdin=subprocess.DEVNULL,
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
        ) as process:
            try:
                _wait_for(port, process)
                yield make_conninfo(host="127.0.0.1", port=port, dbname=database, user="postgres")
            finally:
                process.terminate()


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
