"""A server that runs and does not let a worker in, or does not let it write."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support import cluster, diary, jobs
from tests.support.cluster import Cluster
from tests.support.databases import wait_until
from tests.support.jobs import Connection
from tests.support.roles import Role, role
from tests.support.workers import WorkerProcess, Workers

APP = ("--app", "tests.worker.handlers:app")
LOOPS = ("claim", "finish", "heartbeat")
SEATS = 20
VERSION = int(os.environ.get("PGQ_TEST_PG", "18"))
LIMITS = [
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "lock_timeout",
    "statement_timeout",
    *(["transaction_timeout"] if VERSION >= 17 else []),
]


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A server with few seats."""
    settings = {"synchronous_commit": "on", "max_connections": str(SEATS)}
    with cluster.running(VERSION, settings) as started:
        yield started


@pytest.fixture
def alice(own: Cluster, home: str) -> Iterator[Role]:
    """Whose worker is shut out."""
    with role("alice", dsn=home, port=own.port) as made:
        yield made


@pytest.fixture
def bob(own: Cluster, home: str) -> Iterator[Role]:
    """Whose worker is not."""
    with role("bob", dsn=home, port=own.port) as made:
        yield made


@pytest.fixture
def admin(home: str) -> Iterator[Connection]:
    """A superuser's session, for which seats are reserved, old enough to declare workers dead."""
    with psycopg.connect(home, autocommit=True) as conn:
        yield conn


class Crowd:
    """Idle sessions that take all seats."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._sessions = contextlib.ExitStack()

    def fill(self) -> None:
        """Take what seats are free."""
        with contextlib.suppress(psycopg.OperationalError):
            for _ in range(SEATS):
                self._sessions.enter_context(psycopg.connect(self._dsn))

    def leave(self) -> None:
        """Free all seats."""
        self._sessions.close()


@pytest.fixture
def crowd(bob: Role) -> Iterator[Crowd]:
    """See Crowd."""
    made = Crowd(bob.dsn)
    yield made
    made.leave()


def holding(admin: Connection, hired: Workers, dsn: str) -> WorkerProcess:
    """A worker in the middle of a job, with all its connections."""
    worker = hired.hire(*APP, dsn=dsn)
    jobs.enqueue(admin, "quick")
    wait_until(admin, "select bool_or(status = 'done') from pgq.jobs")
    jobs.enqueue(admin, "keep a diary")
    wait_until(admin, "select bool_or(status = 'running') from pgq.jobs")
    wait_until(admin, "select bool_or(waiting) from pgq.workers")
    return worker


def change_the_password(alice: Role, _: Crowd) -> Callable[[], None]:
    """Let alice in no more; gives the way back."""
    alice.alter("password 'another'")
    alice.terminate()
    return lambda: alice.alter("password 'right'")


def take_her_seats(alice: Role, crowd: Crowd) -> Callable[[], None]:
    """Let no one in for alice's sessions; gives the way back."""
    crowd.fill()
    alice.terminate()
    crowd.fill()
    return crowd.leave


@pytest.mark.parametrize("shut_out", [change_the_password, take_her_seats])
def test_a_worker_that_is_let_in_nowhere_stops_its_jobs_before_others_run_them(
    admin: Connection,
    hired: Workers,
    alice: Role,
    bob: Role,
    crowd: Crowd,
    tmp_path: Path,
    shut_out: Callable[[Role, Crowd], Callable[[], None]],
) -> None:
    outside = holding(admin, hired, alice.dsn)
    inside = hired.hire(*APP, dsn=bob.dsn)
    wait_until(admin, "select pgq.session_age() > interval '5 seconds'")

    let_in = shut_out(alice, crowd)
    wait_until(admin, "select bool_or(worker_id = %s) from pgq.jobs", inside.id)
    (tmp_path / "go").touch()
    wait_until(admin, "select bool_and(status = 'done') from pgq.jobs")

    runs = diary.read(tmp_path / "diary")
    assert [run.pid for run in runs] == [outside.pid, inside.pid]
    assert diary.overlaps(runs) == []
    let_in()
    outside.seen("worker started", times=2)
    for loop in LOOPS:
        assert outside.said("database lost", loop=loop) <= 1


def test_a_worker_whose_heartbeat_is_shut_out_beats_over_its_other_connections(
    admin: Connection, hired: Workers, alice: Role, crowd: Crowd, tmp_path: Path
) -> None:
    worker = holding(admin, hired, alice.dsn)
    hired.hire("--exec", "true", "-q", "elsewhere", dsn=alice.dsn)
    crowd.fill()
    alice.terminate("pgq worker heartbeat")
    crowd.fill()
    worker.seen("database lost", loop="heartbeat")

    with psycopg.connect(admin.info.dsn, autocommit=True) as patient:
        wait_until(patient, "select pgq.session_age() > interval '7 seconds'")
        assert jobs.reap(patient) == {}
    beat = jobs.value(admin, "select beat_at from pgq.workers where id = %s", worker.id)
    wait_until(admin, "select beat_at > %s from pgq.workers where id = %s", beat, worker.id)
    quick = jobs.enqueue(admin, "quick")
    wait_until(admin, "select status = 'done' from pgq.jobs where id = %s", quick)
    crowd.leave()
    worker.seen("database back", loop="heartbeat")
    (tmp_path / "go").touch()

    wait_until(admin, "select bool_and(status = 'done') from pgq.jobs")
    assert jobs.rows(admin, "select distinct attempts, losses from pgq.jobs") == [
        {"attempts": 1, "losses": 0}
    ]
    assert jobs.value(admin, "select count(*) from pgq.workers where died_at is not null") == 0
    assert worker.said("database lost") == worker.said("database back") == 1


def test_a_server_that_takes_no_writes_for_a_while_is_waited_for(
    own: Cluster, admin: Connection, hired: Workers, home: str, tmp_path: Path
) -> None:
    worker = holding(admin, hired, home)
    other = hired.hire("--exec", "true", "-q", "elsewhere")
    admin.execute("set default_transaction_read_only = off")  # for this session, whatever comes
    admin.execute("alter system set default_transaction_read_only = on")
    try:
        admin.execute("select pg_reload_conf()")
        for one in (worker, other):
            one.seen("database lost", loop="heartbeat")
        (tmp_path / "go").touch()
        worker.seen("database lost", loop="finish")
        jobs.enqueue(admin, "quick")
        used = worker.cpu_seconds
        with psycopg.connect(own.dsn(), autocommit=True) as patient:
            wait_until(
                patient,
                "select now() - backend_start > interval '6 seconds'"
                " from pg_stat_activity where pid = pg_backend_pid()",
            )
        assert worker.cpu_seconds - used < 0.5
    finally:
        admin.execute("alter system reset default_transaction_read_only")
        admin.execute("select pg_reload_conf()")

    wait_until(admin, "select bool_and(status = 'done') from pgq.jobs")
    with psycopg.connect(home, autocommit=True) as patient:
        wait_until(patient, "select pgq.session_age() > interval '6 seconds'")
    assert jobs.value(admin, "select count(*) from pgq.workers where died_at is not null") == 0
    assert jobs.value(admin, "select count(*) from pgq.workers") == 2
    assert jobs.counted(admin)["done"] == 3
    assert len(diary.read(tmp_path / "diary")) == 1
    for loop in LOOPS:
        assert worker.said("database lost", loop=loop) == 1
        worker.seen("database back", loop=loop)


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_of_the_role_for_its_sessions_does_not_break_the_workers(
    admin: Connection, hired: Workers, alice: Role, tmp_path: Path, limit: str
) -> None:
    alice.alter(f"set {limit} = '500ms'")
    worker = holding(admin, hired, alice.dsn)
    (job,) = jobs.rows(admin, "select id from pgq.jobs where status = 'running'")

    with psycopg.connect(admin.info.dsn) as slow:
        slow.execute("select from pgq.jobs where id = %s for update", (job["id"],))
        (tmp_path / "go").touch()
        slow.execute("select pg_sleep(3)")  # in which all sessions rest, or wait for this one
    wait_until(admin, "select bool_and(status = 'done') from pgq.jobs")
    again = jobs.enqueue(admin, "quick")
    wait_until(admin, "select status = 'done' from pgq.jobs where id = %s", again)

    assert jobs.counted(admin)["done"] == 3
    assert worker.said("database lost") == 0
