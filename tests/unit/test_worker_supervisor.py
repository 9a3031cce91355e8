"""What a worker tells the init system that started it."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgq.worker import supervisor


@pytest.fixture(params=["file", "abstract"])
def listener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """What NOTIFY_SOCKET says, and the socket that it names."""
    path = str(tmp_path / "notify")
    address, bound = (path, path) if request.param == "file" else (f"@{path}", f"\0{path}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(bound)
        listening.settimeout(0)
        yield address, listening


def test_each_word_is_a_datagram(listener: tuple[str, socket.socket]) -> None:
    address, listening = listener

    supervisor.ready({"NOTIFY_SOCKET": address})
    supervisor.stopping({"NOTIFY_SOCKET": address})

    assert [listening.recv(100) for _ in range(2)] == [b"READY=1", b"STOPPING=1"]


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nowhere/s"}])
def test_without_a_listener_nothing_happens(environ: dict[str, str]) -> None:
    supervisor.ready(environ)


def test_a_listener_that_does_not_read_holds_nobody_up(
    listener: tuple[str, socket.socket],
) -> None:
    for _ in range(5000):
        supervisor.ready({"NOTIFY_SOCKET": listener[0]})
