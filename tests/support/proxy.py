"""A loopback proxy before a PostgreSQL server, which can lose a reply.

It forwards bytes both ways in a thread of its own. Told to, it takes one request of a client to
the server, waits for the answer, and cuts the connection instead of handing it over.
"""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.databases import PATIENCE

PIECE = 1 << 16
BIND = b"B"
"""First byte of the message by which a client runs a statement that it has prepared."""


class Proxy:
    """Listens on a free port; started by `proxying`."""

    def __init__(self, dsn: str) -> None:
        self._server = conninfo_to_dict(dsn)
        self._dsn = dsn
        self._client: bytes | None = None
        self.lost = threading.Event()
        """Set when its connection is cut."""
        self.port = 0
        self._answered = True

    @property
    def dsn(self) -> str:
        """The way to the server's database through here."""
        return make_conninfo(
            self._dsn, host="127.0.0.1", port=self.port, sslmode="disable", gssencmode="disable"
        )

    def lose_reply(self, client: str, *, answered: bool = True) -> None:
        """Cut the connection at the next prepared statement that this client runs.

        `client` is its application_name. Not `answered`: cut as soon as the server has the request.
        """
        self._answered = answered
        self._client = client.encode()

    async def serve(self, started: threading.Event) -> None:
        """Forward until stop()."""
        server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        started.set()
        await self._ended.wait()
        server.close()

    def stop(self) -> None:
        """Forward no more; called from another thread."""
        self._loop.call_soon_threadsafe(self._ended.set)

    async def _forward(
        self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter
    ) -> None:
        server_in, server_out = await self._connect()
        back = asyncio.create_task(self._copy(server_in, client_out))
        try:
            name = b""
            while piece := await client_in.read(PIECE):
                name = name or piece  # the first one has the application's name
                losing = self._client is not None and self._client in name
                if losing and piece.startswith(BIND):
                    await self._lose(piece, server_in, server_out, back)
                    return
                server_out.write(piece)
                await server_out.drain()
        except ConnectionError:
            pass
        finally:
            for writer in (server_out, client_out):
                writer.close()
            back.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await back

    async def _lose(
        self,
        piece: bytes,
        server_in: asyncio.StreamReader,
        server_out: asyncio.StreamWriter,
        back: "asyncio.Task[None]",
    ) -> None:
        self._client = None
        back.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await back
        server_out.write(piece)
        await server_out.drain()
        if self._answered:
            await server_in.read(PIECE)
        self.lost.set()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = str(self._server["host"]), int(str(self._server.get("port", 5432)))
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)

    @staticmethod
    async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while piece := await source.read(PIECE):
                target.write(piece)
                await target.drain()
        target.close()


@contextmanager
def proxying(dsn: str) -> Iterator[Proxy]:
    """A proxy before the server of this DSN while the block runs."""
    proxy = Proxy(dsn)
    started = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(proxy.serve(started)))
    thread.start()
    assert started.wait(PATIENCE)
    try:
        yield proxy
    finally:
        proxy.stop()
        thread.join()
