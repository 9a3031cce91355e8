"""A worker's number is its own, whatever the server forgets in a crash."""

import os

import psycopg
import pytest

from pgq import migrate
from pgq.calls.workers import session as session_of_the_connection
from pgq.errors import Unavailable
from pgq.worker.board import Board
from pgq.worker.heartbeat import DEAF, Heartbeat
from pgq.worker.options import Options
from pgq.worker.registration import register
from tests.support import cluster, jobs
from tests.support.jobs import Connection
from tests.support.workers import Workers


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


def test_a_registration_that_lost_its_connection_is_tried_on_another(
    queue: Connection, shared: str
) -> None:
    heartbeat = Heartbeat(shared, DEAF, Board(set()))
    options = Options(dsn=shared, command="true")
    heartbeat.connect()
    session = heartbeat.ask(session_of_the_connection())
    queue.execute("select pg_terminate_backend(%s, 10000)", (session.pid,))
    try:
        with pytest.raises(Unavailable):
            register(options, heartbeat, concurrency=1)
        worker_id = register(options, heartbeat, concurrency=1)
    finally:
        heartbeat.stop()

    assert jobs.rows(queue, "select id from pgq.workers") == [{"id": worker_id}]


def test_a_registration_without_an_answer_is_given_up(queue: Connection, fleet: Workers) -> None:
    with queue.transaction():
        queue.execute("lock table pgq.kinds in access exclusive mode")
        worker = fleet.start("--app", "tests.worker.handlers:app")

        assert worker.ended() == 3
    assert "no answer from the database for 5 s" in worker.log()[-1]["event"]
