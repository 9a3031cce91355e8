"""One builder for each statement: the name of its SQL file, its parameters, a reader of its rows.

Pure: a Call is a value; only pgq.db runs one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

T_co = TypeVar("T_co", covariant=True)

Rows: TypeAlias = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """A statement to run: sql/queries/NAME.sql with `params`; `read` makes its rows a value."""

    name: str
    params: Mapping[str, Any]
    read: Callable[[Rows], T_co]


def nothing(_rows: Rows) -> None:
    """Read nothing."""


def scalar(rows: Rows) -> Any:
    """Read the first column of the first row."""
    return rows[0][0]
