"""A connection of a worker's loop that comes back: lost, said once, tried again with growing waits.

Nothing above sees a broken connection but as a call that takes longer.
"""

import asyncio
import random
from typing import Any, TypeVar

import psycopg

from pgq import db
from pgq.calls import Call
from pgq.calls.workers import backend_pid, use_read_committed
from pgq.errors import Conflict, Unavailable
from pgq.runner import fork
from pgq.worker import log

T = TypeVar("T")

FIRST_WAIT = 0.05
LONGEST_WAIT = 1.0


def next_wait(wait: float) -> float:
    """The wait after this one, before jitter."""
    return min(wait * 2, LONGEST_WAIT)


class Link:
    """One async connection, made anew whenever it is lost."""

    def __init__(self, dsn: str, name: str) -> None:
        self._dsn = dsn
        self._name = name
        self._conn: psycopg.AsyncConnection[Any] | None = None

    async def run(self, call: Call[T]) -> T:
        """Run a call, reconnecting and sending it again until it is answered.

        Only for calls that may be sent twice: the reply to the first may be what was lost.
        """
        wait = FIRST_WAIT
        reported = False
        while True:
            try:
                answer = await self.run_once(call)
            except (Unavailable, Conflict) as error:
                if not reported:
                    log.warning("database lost", loop=self._name, error=str(error))
                    reported = True
                await asyncio.sleep(wait * random.uniform(0.5, 1.0))
                wait = next_wait(wait)
            else:
                if reported:
                    log.info("database back", loop=self._name)
                return answer

    async def run_once(self, call: Call[T]) -> T:
        """Run a call once; Unavailable if the connection is lost, and the next call reconnects."""
        try:
            if self._conn is None:
                self._conn = await self._connect()
            return await db.run_async(self._conn, call)
        except Unavailable:
            await self.close()
            raise

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        conn = await db.connect_async(self._dsn, application_name=f"pgq worker {self._name}")
        try:
            # Prepared at first use, but not through a pooler, where the next session may answer.
            pooled = await db.run_async(conn, backend_pid()) != conn.info.backend_pid
            if not pooled:
                await db.run_async(conn, use_read_committed())
        except BaseException:
            await conn.close()
            raise
        conn.prepare_threshold = None if pooled else 0
        fork.own(conn.fileno())
        return conn

    async def close(self) -> None:
        """Close the connection if there is one."""
        if self._conn is not None:
            conn, self._conn = self._conn, None
            if not conn.closed:
                fork.disown(conn.fileno())
            await conn.close()
