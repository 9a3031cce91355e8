"""An outbox of each test's own, and no mail server unless the test starts one."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest

import pgq
from examples.shop.demo.mailserver import MailServer


@pytest.fixture
def outbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the shop's files go in this test."""
    folder = tmp_path / "outbox"
    monkeypatch.setenv("SHOP_OUTBOX", str(folder))
    monkeypatch.delenv("SHOP_SMTP", raising=False)
    return folder


@pytest.fixture
def mailserver(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    """A mail server that the shop sends to."""
    server = MailServer(closed={"closed@example.org"}, greylisted={"grey@example.org"})
    monkeypatch.setenv("SHOP_SMTP", server.address)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def job() -> pgq.Job:
    """The job that a handler which asks for one is given."""
    return pgq.Job(
        id=17,
        queue="mail",
        kind="send_email",
        payload={},
        priority=0,
        scheduled_at=datetime(2026, 3, 2, tzinfo=UTC),
        attempt=1,
        max_attempts=3,
        timeout=None,
        cancelled=Event(),
    )
