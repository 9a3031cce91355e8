"""What a worker that cannot get in finds out about the place where its database should be."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgq.reach import Place, Reach, reach
from tests.support.pooler import pooling


@contextmanager
def listening(backlog: int = 5) -> Iterator[socket.socket]:
    """A port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as door:
        yield door


def at(door: socket.socket) -> str:
    return make_conninfo(host="127.0.0.1", port=door.getsockname()[1], dbname="x", user="x")


@pytest.fixture
def closed() -> str:
    """A port at which nobody listens."""
    with listening() as door:
        return at(door)


def over_tcp(dsn: str, **settings: str) -> str:
    given = conninfo_to_dict(dsn)
    return make_conninfo("", **{**given, "host": "127.0.0.1", **settings})


def test_a_closed_port_is_no_server(closed: str) -> None:
    assert reach(closed) is Reach.CLOSED


def test_a_server_that_lets_in_is_a_standby_or_back(shared: str) -> None:
    assert reach(shared) is Reach.CLOSED


def test_a_server_that_runs_and_refuses_is_told_from_one_that_is_down(shared: str) -> None:
    assert reach(over_tcp(shared, password="wrong")) is Reach.REFUSED
    assert reach(over_tcp(shared, user="nobody_of_this_name", password="x")) is Reach.REFUSED


def test_a_pooler_that_lets_in_and_does_not_answer_is_silent(shared: str) -> None:
    with pooling(shared, size=1) as pooled:
        with psycopg.connect(pooled) as busy:
            busy.execute("select")
            assert reach(pooled) is Reach.SILENT

        assert reach(pooled) is Reach.CLOSED


def test_a_port_that_says_nothing_is_silent() -> None:
    with listening() as door:
        assert reach(at(door)) is Reach.SILENT


def test_a_host_without_an_address_is_silent() -> None:
    assert reach("host=pgq-no-such-host.invalid dbname=x user=x") is Reach.SILENT


def test_one_that_hangs_up_stands_before_a_server_that_is_down() -> None:
    with listening() as door:
        ended = threading.Event()

        def hang_up() -> None:
            door.settimeout(0.1)
            while not ended.is_set():
                try:
                    door.accept()[0].close()
                except TimeoutError:
                    continue

        thread = threading.Thread(target=hang_up)
        thread.start()
        try:
            assert reach(at(door)) is Reach.CLOSED
        finally:
            ended.set()
            thread.join()


def test_of_several_hosts_the_one_that_refuses_counts(shared: str, closed: str) -> None:
    port = conninfo_to_dict(shared)["port"]
    other = conninfo_to_dict(closed)["port"]
    both = over_tcp(shared, host="127.0.0.1,127.0.0.1", port=f"{other},{port}", password="wrong")

    assert reach(both) is Reach.REFUSED


def test_what_the_environment_leaves_open_is_known_from_the_last_session(
    monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    """A port in PGPORT, a host in a service file: the DSN does not name them."""
    with listening() as door:
        port = door.getsockname()[1]
        monkeypatch.setenv("PGPORT", str(port))
        at_port = "host=127.0.0.1 dbname=x user=x"
        assert reach(at_port, Place("127.0.0.1", port)) is Reach.SILENT
    other = int(str(conninfo_to_dict(closed)["port"]))
    monkeypatch.setenv("PGPORT", str(other))
    assert reach(at_port, Place("127.0.0.1", other)) is Reach.CLOSED
    assert reach("service=pgq_no_such_service dbname=x") is Reach.SILENT
