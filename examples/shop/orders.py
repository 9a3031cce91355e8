"""The application's side: orders come in, and what must follow from them becomes jobs.

Nothing here runs a job, and no handler is imported but for the shape of its payload.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import psycopg

import pgq
from examples.shop.invoices import Invoice, Line, total

PHOTO_SIZES = (160, 640)


@dataclass(frozen=True, slots=True)
class Customer:
    name: str
    email: str
    address: list[str]
    country: str
    latin_name: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    number: str
    placed_at: str
    customer: Customer
    currency: str
    lines: list[Line]

    @property
    def total(self) -> Decimal:
        return total(self.lines)


def load(file: Path) -> list[Order]:
    """The orders of a file with one JSON object a line."""
    with file.open(encoding="utf-8") as lines:
        return [_order(**json.loads(line)) for line in lines]


def _order(*, customer: dict[str, Any], lines: list[dict[str, Any]], **rest: Any) -> Order:
    positions = [Line(line["title"], line["quantity"], line["price"]) for line in lines]
    return Order(customer=Customer(**customer), lines=positions, **rest)


def place(conn: psycopg.Connection[Any], orders: Sequence[Order]) -> list[pgq.Enqueued]:
    """Store the orders and enqueue their jobs, in the transaction that `conn` is in.

    Both are committed or neither is: no e-mail for an order that was rolled back, and no order
    whose e-mail is forgotten because the process died between two systems.
    """
    with conn.cursor() as cursor:
        cursor.executemany(
            "insert into shop.orders (number, placed_at, email, name, country, currency, total)"
            " values (%s, %s, %s, %s, %s, %s, %s)",
            [_row(order) for order in orders],
        )
    return pgq.enqueue_many(conn, chain.from_iterable(jobs(order) for order in orders))


def _row(order: Order) -> tuple[object, ...]:
    customer = order.customer
    return (
        order.number,
        order.placed_at,
        customer.email,
        customer.name,
        customer.country,
        order.currency,
        order.total,
    )


def jobs(order: Order) -> Iterator[pgq.NewJob]:
    """What must follow from an order."""
    customer = order.customer
    yield pgq.NewJob("send_email", confirmation(order))
    invoice = Invoice(
        number=order.number,
        name=customer.name,
        latin_name=customer.latin_name,
        address=[*customer.address, customer.country],
        currency=order.currency,
        lines=order.lines,
    )
    yield pgq.NewJob("make_invoice", invoice)
    yield pgq.NewJob("sync_contact", {"email": customer.email})


def confirmation(order: Order) -> dict[str, str]:
    """The payload of the e-mail that confirms an order."""
    positions = [f"{line.quantity} x {line.title}: {line.amount:,f}" for line in order.lines]
    body = [
        f"Dear {order.customer.name},",
        "",
        f"thank you for your order {order.number}:",
        "",
        *positions,
        f"Total: {order.total:,f} {order.currency}",
    ]
    return {
        "to": order.customer.email,
        "name": order.customer.name,
        "subject": f"Your order {order.number}",
        "body": "\n".join(body) + "\n",
    }


def photo_jobs(names: Sequence[str]) -> Iterator[pgq.NewJob]:
    """What must follow from new product photos."""
    for name in names:
        for size in PHOTO_SIZES:
            yield pgq.NewJob("resize_photo", {"photo": name, "size": size})
