"""A primary and its streaming standby, for what happens when the one is lost.

Both are private servers of `cluster`, and go like those. The schema is in their database
`postgres`; its name leads to whichever of the two takes writes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import make_conninfo

from pgq import migrate
from tests.support import cluster
from tests.support.cluster import Cluster
from tests.support.databases import wait_until

SETTINGS = {
    "max_wal_senders": "4",
    "synchronous_commit": "on",
    "wal_level": "replica",
    "wal_retrieve_retry_interval": "100ms",
}


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two servers, of which the second one follows the first."""

    primary: Cluster
    standby: Cluster

    @property
    def dsn(self) -> str:
        """The way in, as an application has it that shall survive the loss of the primary."""
        both = (self.primary, self.standby)
        return make_conninfo(
            host=",".join(str(server.home) for server in both),
            port=",".join(str(server.port) for server in both),
            dbname="postgres",
            user="postgres",
            target_session_attrs="read-write",
        )

    def fail_over(self) -> None:
        """Crash the primary and promote the standby; returns once that one takes writes."""
        self.primary.stop("immediate")
        self.standby.promote()

    def part(self) -> None:
        """Let the standby hear nothing more of the primary."""
        with psycopg.connect(self.standby.dsn(), autocommit=True) as conn:
            conn.execute("alter system set primary_conninfo = ''")
            conn.execute("select pg_reload_conf()")
            wait_until(conn, "select count(*) = 0 from pg_stat_wal_receiver")


@contextmanager
def replicated(version: int, *, synchronous: bool) -> Iterator[Pair]:
    """A pair of this major version; `synchronous`: a commit waits until the standby has it."""
    with cluster.running(version, SETTINGS) as primary, cluster.placed(version) as standby:
        with psycopg.connect(primary.dsn(), autocommit=True) as conn:
            conn.execute("alter database postgres set search_path = ''")
            migrate.install(conn)
            standby.follow(primary)
            standby.start()
            wait_until(conn, "select count(*) = 1 from pg_stat_replication")
            if synchronous:
                conn.execute("alter system set synchronous_standby_names = '*'")
                conn.execute("select pg_reload_conf()")
                wait_until(conn, "select bool_or(sync_state = 'sync') from pg_stat_replication")
        yield Pair(primary=primary, standby=standby)
