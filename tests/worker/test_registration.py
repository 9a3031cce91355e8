"""A worker's number is its own, whatever the server forgets in a crash."""

import os

import psycopg

from pgq import migrate
from tests.support import cluster, jobs


def test_no_two_workers_have_one_id_though_the_server_crashes_between_them() -> None:
    with cluster.running(int(os.environ.get("PGQ_TEST_PG", "18"))) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as conn:
            conn.execute("alter system set wal_writer_delay = '10s'")
            migrate.install(conn)
        server.restart()  # the next number is taken from the sequence anew, and logged
        ids = []
        for _ in range(2):
            # As a heartbeat's connection is.
            options = "-c synchronous_commit=off"
            with psycopg.connect(server.dsn(), autocommit=True, options=options) as conn:
                ids.append(jobs.register(conn))
            server.restart("immediate")

        with psycopg.connect(server.dsn()) as conn:
            assert jobs.rows(conn, "select id from pgq.workers order by id") == [
                {"id": number} for number in ids
            ]
    assert len(set(ids)) == 2
