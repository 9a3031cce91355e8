"""Orders and their jobs are one transaction, and every job fits its handler."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import examples.shop
from examples.shop import app, orders
from examples.shop.contacts import sync_contact

FOLDER = Path(examples.shop.__file__).parent
ORDERS = orders.load(FOLDER / "orders.jsonl")


@pytest.fixture
def shop(db: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection]:
    """A connection to a database with the shop's tables, outside any transaction."""
    monkeypatch.setenv("SHOP_DSN", db)
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute((FOLDER / "schema.sql").read_bytes())
        yield conn


def counts(conn: psycopg.Connection) -> tuple[int, ...]:
    row = conn.execute(
        "select (select count(*) from shop.orders), (select count(*) from pgq.jobs)"
    ).fetchone()
    assert row is not None
    return row


def test_orders_and_their_jobs_are_committed_together(shop: psycopg.Connection) -> None:
    with shop.transaction():
        placed = orders.place(shop, ORDERS)

    assert counts(shop) == (len(ORDERS), len(placed))


def test_orders_and_their_jobs_are_rolled_back_together(shop: psycopg.Connection) -> None:
    with shop.transaction(force_rollback=True):
        orders.place(shop, ORDERS)

    assert counts(shop) == (0, 0)


def test_every_job_fits_its_handler(shop: psycopg.Connection) -> None:
    with shop.transaction():
        orders.place(shop, ORDERS)

    stored = shop.execute("select kind, payload from pgq.jobs").fetchall()
    for kind, payload in stored:
        app.handlers[kind].binding.arguments(payload)
    assert len(stored) == 3 * len(ORDERS)


async def test_a_contact_has_its_last_name_and_all_its_orders(shop: psycopg.Connection) -> None:
    first, second = ORDERS[:2]
    email = first.customer.email
    with shop.transaction():
        orders.place(shop, ORDERS[:2])
        shop.execute("update shop.orders set email = %s", (email,))

    assert await sync_contact(email) == {"changed": True}
    assert await sync_contact(email) == {"changed": True}

    contacts = shop.execute("select email, name, orders from shop.contacts").fetchall()
    assert contacts == [(email, second.customer.name, 2)]


async def test_a_late_sync_does_not_undo_a_newer_one(shop: psycopg.Connection) -> None:
    order = ORDERS[0]
    with shop.transaction():
        orders.place(shop, [order])
    await sync_contact(order.customer.email)
    shop.execute("update shop.contacts set last_order_at = 'infinity', name = 'newer'")

    assert await sync_contact(order.customer.email) == {"changed": False}

    assert shop.execute("select name from shop.contacts").fetchall() == [("newer",)]
