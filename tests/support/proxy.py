"""A loopback proxy before a PostgreSQL server, which fails as networks do.

It forwards bytes both ways in a thread of its own. Told to, it loses a reply (takes one request of
a client to the server, waits for the answer, and cuts the connection instead of handing it over),
keeps connections and forwards nothing (half-open), or lets nobody in.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.databases import PATIENCE

PIECE = 1 << 16
BIND = b"B"
"""First byte of the message by which a client runs a statement that it has prepared."""


@dataclass(eq=False)
class _Wire:
    """One client's connection: its first message, which has the application's name, and gates."""

    first: bytes
    sends: asyncio.Event
    hears: asyncio.Event


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
        self._wires: dict[asyncio.Task[None], _Wire] = {}
        self._still = False

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

    def stall(self, client: str = "", *, requests: bool = True, new: bool = False) -> None:
        """Keep this client's connections and forward nothing.

        `client` is its application_name, or "" for everybody. Not `requests`: only the server's
        replies are kept. `new`: whoever connects from now on gets no further either.
        """
        self._call(lambda: self._set_still(client.encode(), requests=requests, new=new))

    def flow(self) -> None:
        """Forward again, also what came meanwhile."""
        self._call(self._set_flowing)

    def refuse(self) -> None:
        """Cut all connections and let nobody in, like a server that does not run."""
        self._do(self._refuse())

    def accept(self) -> None:
        """Let clients in again, at the same port."""
        self._do(self._listen())

    async def serve(self, started: threading.Event) -> None:
        """Forward until stop()."""
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        await self._listen()
        started.set()
        await self._ended.wait()
        await self._refuse()

    def stop(self) -> None:
        """Forward no more; called from another thread."""
        self._call(self._ended.set)

    def _call(self, function: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(function)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def _set_still(self, client: bytes, *, requests: bool, new: bool) -> None:
        self._still = new
        for wire in self._wires.values():
            if client in wire.first:
                wire.hears.clear()
                if requests:
                    wire.sends.clear()

    def _set_flowing(self) -> None:
        self._still = False
        for wire in self._wires.values():
            wire.hears.set()
            wire.sends.set()

    async def _listen(self) -> None:
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def _refuse(self) -> None:
        self._listening.close()
        for connection in list(self._wires):
            connection.cancel()
        await asyncio.gather(*self._wires, return_exceptions=True)

    async def _serve(
        self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter
    ) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        wire = self._wires[connection] = _Wire(b"", asyncio.Event(), asyncio.Event())
        if not self._still:
            wire.sends.set()
            wire.hears.set()
        try:
            await self._forward(wire, client_in, client_out)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            del self._wires[connection]
            client_out.close()

    async def _forward(
        self, wire: _Wire, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter
    ) -> None:
        piece = wire.first = await client_in.read(PIECE)
        await wire.sends.wait()
        server_in, server_out = await self._connect()
        back = asyncio.create_task(self._copy(wire, server_in, client_out))
        try:
            while piece:
                await wire.sends.wait()
                losing = self._client is not None and self._client in wire.first
                if losing and piece.startswith(BIND):
                    await self._lose(piece, server_in, server_out, back)
                    return
                server_out.write(piece)
                await server_out.drain()
                piece = await client_in.read(PIECE)
            await wire.sends.wait()
        finally:
            server_out.close()
            back.cancel()
            await asyncio.gather(back, return_exceptions=True)

    async def _lose(
        self,
        piece: bytes,
        server_in: asyncio.StreamReader,
        server_out: asyncio.StreamWriter,
        back: "asyncio.Task[None]",
    ) -> None:
        self._client = None
        back.cancel()
        await asyncio.gather(back, return_exceptions=True)
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
    async def _copy(
        wire: _Wire, source: asyncio.StreamReader, target: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while piece := await source.read(PIECE):
                await wire.hears.wait()
                target.write(piece)
                await target.drain()
        await wire.hears.wait()
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
