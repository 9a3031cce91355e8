"""A connection of a worker's loop that comes back: lost, said once, tried again with growing waits.

Nothing above sees a broken connection but as a call that takes longer.
"""

import asyncio
import random
from typing import Any, TypeVar

import psycopg

from pgq import db
from pgq.calls import Call
from pgq.calls.workers import Session, end_session, prepare_session, session
from pgq.errors import Conflict, ConnectionLost, PgqError, Unavailable
from pgq.runner import fork
from pgq.runner.interrupt import clock
from pgq.worker import log

T = TypeVar("T")

FIRST_WAIT = 0.05
LONGEST_WAIT = 0.8

ANSWER = 20.0
"""Seconds in which a call must be answered; else its connection is given up.

All that a worker asks may be asked again, so that one that was only slow does no harm.
"""


def next_wait(wait: float) -> float:
    """The wait after this one, before jitter."""
    return min(wait * 2, LONGEST_WAIT)


class Link:
    """One async connection, made anew whenever it is lost."""

    def __init__(self, dsn: str, name: str) -> None:
        self._dsn = dsn
        self.name = name
        self._conn: psycopg.AsyncConnection[Any] | None = None
        self._connecting = asyncio.Lock()
        """Two tasks that come at once wait for one connection."""
        self._session: Session | None = None
        """That of the connection, or, without one, that of the last, which was given up."""
        self._descriptor = -1
        self._failing: tuple[float, str] | None = None
        self._asked_at: float | None = None
        self._said = False

    @property
    def said(self) -> bool:
        """Whether the log says already that the connection is lost."""
        return self._said

    def trouble(self, now: float) -> tuple[float, str] | None:
        """For how many seconds it has not worked now, and why; None if it works."""
        failing, asked_at = self._failing, self._asked_at
        if failing is not None:
            return now - failing[0], failing[1]
        return None if asked_at is None else (now - asked_at, "no answer yet")

    async def run(self, call: Call[T]) -> T:
        """Run a call, reconnecting and sending it again until it is answered.

        Only for calls that may be sent twice: the reply to the first may be what was lost.
        """
        wait = FIRST_WAIT
        while True:
            try:
                return await self.run_once(call)
            except (Unavailable, Conflict):
                await asyncio.sleep(wait * random.uniform(0.5, 1.0))
                wait = next_wait(wait)

    async def run_once(self, call: Call[T]) -> T:
        """Run a call once; Unavailable if the connection is lost, and the next call reconnects.

        Says in the log when calls begin to fail, and when they work again.
        """
        try:
            async with self._connecting:
                conn = self._conn = self._conn or await self._connect()
            answer = await self._ask(conn, call)
        except PgqError as error:
            self._note(error)
            if isinstance(error, Unavailable):
                await self.close()
            raise
        if self._failing is not None:
            self._recovered()
        return answer

    async def run_if_open(self, call: Call[T]) -> T:
        """Run a call on the connection that is open now, with patience of the caller's.

        Unavailable if there is none.
        """
        if self._conn is None:
            raise Unavailable(f"the connection of the {self.name} loop is closed")
        return await db.run_async(self._conn, call)

    async def _ask(self, conn: psycopg.AsyncConnection[Any], call: Call[T]) -> T:
        loop = asyncio.get_running_loop()
        self._asked_at = clock()
        until = loop.time() + ANSWER
        late = loop.call_at(until, db.cut, conn)
        try:
            return await db.run_async(conn, call)
        except ConnectionLost as error:
            if loop.time() >= until:
                raise ConnectionLost(f"no answer from the database for {ANSWER:g} s") from error
            raise
        finally:
            late.cancel()
            self._asked_at = None

    def _note(self, error: PgqError) -> None:
        if self._failing is None:
            self._failing = (clock(), str(error))
        if isinstance(error, Unavailable) and not self._said:
            log.warning("database lost", loop=self.name, error=str(error))
            self._said = True

    def _recovered(self) -> None:
        self._failing = None
        if self._said:
            log.info("database back", loop=self.name)
            self._said = False

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        conn = await db.connect_async(self._dsn, application_name=f"pgq worker {self.name}")
        try:
            answering = await self._ask(conn, session())
            pooled = answering.pid != conn.info.backend_pid
            if not pooled:
                await self._ask(conn, prepare_session())
                if self._session is not None:
                    # A claim that is still on its way there would claim for nobody.
                    await self._ask(conn, end_session(self._session))
                self._session = answering
        except BaseException:
            await conn.close()
            raise
        if not pooled:
            conn.prepare_threshold = 0  # prepared at first use
        self._descriptor = conn.fileno()
        fork.own(self._descriptor)
        return conn

    def cut(self) -> None:
        """Break the connection beneath a call without an answer: to cancel it would take long."""
        if self._conn is not None:
            db.cut(self._conn)

    async def close(self) -> None:
        """Close the connection if there is one."""
        if self._conn is not None:
            conn, self._conn = self._conn, None
            fork.disown(self._descriptor)
            await conn.close()
