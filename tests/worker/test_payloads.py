"""Payloads become arguments; one that does not fit fails its job for good, and says why."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional

import pydantic
import pytest

import pgq
from tests.worker.conftest import WorkOff


@dataclass
class Line:
    article: str
    count: int = 1


@dataclass
class Order:
    number: int
    lines: list[Line]
    first: Line | None = None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError("number starts at 1")


@dataclass
class Post:
    """A record may have a field that is called as the job is."""

    job: Any


class Address(pydantic.BaseModel):
    street: str
    number: int


class Customer(pydantic.BaseModel):
    name: str
    address: Address


async def keys(to: str, count: int = 1, *, ratio: float = 0.5) -> list[object]:
    return [to, count, ratio]


async def anything(to: str, **rest: Any) -> dict[str, Any]:
    return {"to": to, "rest": rest}


async def optional(to: str | None, cc: Optional[str] = "nobody") -> list[object]:  # noqa: UP045
    return [to, cc]


async def order(order: Order) -> object:
    return [order.number, [[line.article, line.count] for line in order.lines], order.first]


async def lines(lines: list[Line], spare: Line | None = None) -> list[object]:
    return [*(line.article for line in lines), spare and spare.article]


async def post(post: Post) -> Any:
    return post.job


async def customer(customer: Customer) -> str:
    return f"{customer.name}, {customer.address.street} {customer.address.number}"


async def call(customer: Customer, job: pgq.Job) -> list[object]:
    return [customer.name, job.kind, job.attempt]


async def delivery(to: Customer, count: int, job: pgq.Job) -> list[object]:
    return [to.name, count, job.kind]


def nothing() -> None:
    pass


ANN = {"name": "Ann", "address": {"street": "High St", "number": 5}}

FITTING: list[tuple[Callable[..., Any], dict[str, Any], object]] = [
    (keys, {"to": "ann"}, ["ann", 1, 0.5]),
    (keys, {"to": "ann", "count": 2, "ratio": 3}, ["ann", 2, 3]),
    (anything, {"to": "ann", "a": 1, "b": None}, {"to": "ann", "rest": {"a": 1, "b": None}}),
    (optional, {"to": None}, [None, "nobody"]),
    (optional, {"to": "ann", "cc": None}, ["ann", None]),
    (order, {"number": 7, "lines": [{"article": "tea"}]}, [7, [["tea", 1]], None]),
    (lines, {"lines": [{"article": "tea"}], "spare": {"article": "cup"}}, ["tea", "cup"]),
    (post, {"job": "baker"}, "baker"),
    (customer, ANN, "Ann, High St 5"),
    (call, ANN, ["Ann", "work", 1]),
    (delivery, {"to": ANN, "count": 2}, ["Ann", 2, "work"]),
    (nothing, {}, None),
]


@pytest.mark.parametrize(("handler", "payload", "result"), FITTING)
def test_a_fitting_payload_fills_the_parameters(
    work_off: WorkOff, handler: Callable[..., Any], payload: dict[str, Any], result: object
) -> None:
    row = work_off(handler, payload)

    assert (row["status"], row["result"], row["last_error"]) == ("done", result, None)


MISFITS: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (keys, {}, "the payload lacks 'to'"),
    (keys, {"to": "ann", "bcc": 1, "cc": 2}, "the handler takes no 'bcc', 'cc'"),
    (keys, {"to": 5}, "to: must be a string, not 5"),
    (keys, {"to": "ann", "count": "2"}, "count: must be a whole number, not '2'"),
    (keys, {"to": "ann", "count": True}, "count: must be a whole number, not True"),
    (keys, {"to": "ann", "count": 1.5}, "count: must be a whole number, not 1.5"),
    (keys, {"to": "ann", "count": None}, "count: must be a whole number, not None"),
    (keys, {"to": "ann", "x\n2030 forged": 1}, "the handler takes no 'x\\\\n2030 forged'"),
    (anything, {"rest": {}}, "the payload lacks 'to'"),
    (optional, {"to": 5}, "to: must be a string, not 5"),
    (order, {"number": 7}, "the payload lacks 'lines'"),
    (order, {"number": 0, "lines": []}, "Order: number starts at 1"),
    (order, {"number": 7, "lines": {}}, "lines: must be an array, not {}"),
    (order, {"number": 7, "lines": [{"article": 3}]}, "lines: [0]: article: must be a string"),
    (order, {"number": 7, "lines": [], "first": "tea"}, "first: must be an object, not 'tea'"),
    (customer, {"name": "Ann"}, "address: Field required"),
    (
        customer,
        {"name": "Ann", "address": {"street": "High St", "number": "five"}},
        "address.number: Input should be a valid integer",
    ),
    (delivery, {"to": ANN, "count": 2, "job": {}}, "the handler takes no 'job'"),
    (delivery, {"to": {}, "count": 2}, "to: name: Field required; address: Field required"),
    (nothing, {"to": "ann"}, "the handler takes no 'to'"),
]


@pytest.mark.parametrize(("handler", "payload", "error"), MISFITS)
def test_a_payload_that_does_not_fit_fails_for_good_and_says_why(
    work_off: WorkOff, handler: Callable[..., Any], payload: dict[str, Any], error: str
) -> None:
    row = work_off(handler, payload)

    assert (row["status"], row["attempts"]) == ("failed", 1)
    assert row["last_error"].startswith("payload does not fit: ")
    assert error in row["last_error"]
    assert "\n" not in row["last_error"]
