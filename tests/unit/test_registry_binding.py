"""How a signature is read, and how a payload fills it."""

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from typing import Annotated, Any, Literal

import pytest

import pgq
from pgq.errors import UsageError
from pgq.registry.binding import Misfit, bind


@dataclass
class Node:
    """A record that refers to itself."""

    name: str
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)


@dataclass
class Made:
    """A record with fields that are not given."""

    width: int
    scale: InitVar[int] = 1
    area: int = field(init=False)

    def __post_init__(self, scale: int) -> None:
        self.area = self.width * scale


def test_the_job_goes_to_the_parameter_that_asks_for_it() -> None:
    def by_type(task: pgq.Job, to: str) -> None: ...

    def by_name(job, to):  # type: ignore[no-untyped-def]
        ...

    def neither(job: dict[str, Any], to: str) -> None: ...

    assert bind(by_type).job_parameter == "task"
    assert bind(by_name).job_parameter == "job"
    assert bind(neither).job_parameter is None


def test_a_record_alone_takes_the_whole_payload() -> None:
    def alone(node: Node) -> None: ...

    def beside(node: Node, job: pgq.Job) -> None: ...

    def two(node: Node, other: int) -> None: ...

    assert bind(alone).arguments({"name": "a"}) == {"node": Node("a")}
    assert bind(beside).whole == "node"
    assert bind(two).whole is None


def test_records_are_made_at_every_depth() -> None:
    def handler(node: Node) -> None: ...

    payload = {"name": "a", "parent": {"name": "b"}, "children": [{"name": "c"}, {"name": "d"}]}

    assert bind(handler).arguments(payload) == {
        "node": Node("a", Node("b"), [Node("c"), Node("d")])
    }


def test_a_records_own_constructor_decides() -> None:
    def handler(made: Made) -> None: ...

    (made,) = bind(handler).arguments({"width": 3, "scale": 2}).values()
    assert made.area == 6
    with pytest.raises(Misfit, match="the handler takes no 'area'"):
        bind(handler).arguments({"width": 3, "area": 9})


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        (str, "a", 1),
        (int, 1, True),
        (int, -1, 1.0),
        (float, 1, "1"),
        (float, 1.5, False),
        (bool, True, 1),
        (dict, {}, []),
        (dict[str, int], {"a": 1}, []),
        (list, [], {}),
        (list[int], [1], [1, "2"]),
        (list[list[str]], [["a"]], [["a"], "b"]),
        (str | None, None, 1),
        (Annotated[int, "positive"], 1, "1"),
    ],
)
def test_a_value_must_be_of_its_parameters_type(hint: Any, good: object, bad: object) -> None:
    def handler(value): ...  # type: ignore[no-untyped-def]

    handler.__annotations__["value"] = hint

    assert bind(handler).arguments({"value": good}) == {"value": good}
    with pytest.raises(Misfit, match=r"value: .*must be"):
        bind(handler).arguments({"value": bad})


@pytest.mark.parametrize("hint", [Any, Literal["a"], int | str, Mapping[str, int], object])
def test_any_other_type_takes_what_comes(hint: Any) -> None:
    def handler(value): ...  # type: ignore[no-untyped-def]

    handler.__annotations__["value"] = hint

    assert bind(handler).arguments({"value": [1]}) == {"value": [1]}


def test_many_wrong_keys_are_named_in_part() -> None:
    def handler(**job: Any) -> None: ...

    def strict() -> None: ...

    assert bind(handler).arguments({"a": 1}) == {"a": 1}
    with pytest.raises(Misfit, match="'k0', 'k1', 'k2', 'k3', 'k4' and 4 more"):
        bind(strict).arguments({f"k{n}": n for n in range(9)})


def test_a_signature_that_no_payload_can_fill_is_refused() -> None:
    def positional(to: str, /) -> None: ...

    def variadic(*to: str) -> None: ...

    def unknown(to: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    for function, words in (
        (positional, "to is positional"),
        (variadic, "to is positional"),
        (unknown, "its annotations cannot be read: name 'Nowhere' is not defined"),
    ):
        with pytest.raises(UsageError, match=words):
            bind(function)


def test_a_payload_that_names_its_kind_as_type_fits_a_handler_that_does_not_take_it() -> None:
    @dataclass
    class Mail:
        to: str

    def plain(to: str) -> None: ...

    def whole(mail: Mail) -> None: ...

    def typed(type: str, to: str) -> None: ...  # noqa: A002

    payload = {"type": "send", "to": "a"}
    assert bind(plain, kind="send").arguments(payload) == {"to": "a"}
    assert bind(whole, kind="send").arguments(payload) == {"mail": Mail("a")}
    assert bind(typed, kind="send").arguments(payload) == payload
    with pytest.raises(Misfit, match="the handler takes no 'type'"):
        bind(plain, kind="other").arguments(payload)
