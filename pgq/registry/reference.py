"""How another process finds a handler: by its module, and its name in there."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pgq.errors import UsageError


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a function is."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    def load(self) -> Callable[..., Any]:
        """Import it; raises whatever its module does."""
        function: Callable[..., Any] = _named(import_module(self.module), self.name)
        return function


def refer(function: Callable[..., Any]) -> Reference:
    """Where a handler for processes is; UsageError if no other process could find it there."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None)
    if module is None or name is None:
        raise UsageError(f"handler {function!r}: a process imports only functions: give it one")
    if "<" in name:  # <locals>, <lambda>
        raise UsageError(
            f"handler {name}: a process cannot import it: define it at the top of a module"
        )
    return Reference(module, name)


def check_reference(function: Callable[..., Any]) -> None:
    """Raise UsageError unless another process will find this very function.

    Not at registration: its module has no name for it before its decorators are through.
    """
    reference = refer(function)
    if reference.module == "__main__":
        raise UsageError(
            f"handler {reference.name}: a process cannot import it from __main__: move it to a "
            "module of its own"
        )
    try:
        found = _named(sys.modules[reference.module], reference.name)
    except (KeyError, AttributeError):
        found = None
    if found != function:  # not `is`: a class method is made anew at each look
        raise UsageError(
            f"handler {reference}: a process would find something else by this name: put "
            "@app.job above all other decorators, and give each handler a name of its own"
        )


def _named(module: object, name: str) -> Any:
    found = module
    for attribute in name.split("."):
        found = getattr(found, attribute)
    return found
