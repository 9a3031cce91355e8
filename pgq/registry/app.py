"""The App: which function handles which kind, and with which defaults."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal, TypeVar

from pgq.calls.workers import KindDefaults
from pgq.client import check
from pgq.errors import UsageError
from pgq.model import NewJob
from pgq.policy import RetryPolicy, check_retry
from pgq.registry.binding import Binding, bind
from pgq.registry.reference import refer

F = TypeVar("F", bound=Callable[..., Any])


class Isolation(StrEnum):
    """Where a job runs."""

    ASYNC = "async"
    THREAD = "thread"
    PROCESS = "process"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Handler:
    """One kind's function, with what was decided about it at registration."""

    kind: str
    function: Callable[..., Any]
    isolation: Isolation
    binding: Binding
    queue: str | None
    max_attempts: int | None
    timeout: timedelta | None
    retry: RetryPolicy | None

    @property
    def defaults(self) -> KindDefaults:
        """What jobs of this kind get when they leave it out at enqueue."""
        return KindDefaults(self.kind, self.queue, self.max_attempts, self.timeout)


class App:
    """The handlers of an application; `pgq worker --app MODULE:APP` runs them."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def __repr__(self) -> str:
        return f"<App {' '.join(sorted(self._handlers)) or 'without handlers'}>"

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The handlers by kind."""
        return self._handlers

    def job(
        self,
        kind: str,
        *,
        queue: str | None = None,
        max_attempts: int | None = None,
        timeout: timedelta | None = None,
        retry: RetryPolicy | None = None,
        isolation: Literal["process"] | None = None,
    ) -> Callable[[F], F]:
        """Make a function the handler of a kind; the function itself stays as it is.

        An `async def` runs on the worker's event loop, a `def` in a thread, and with isolation
        `process` either runs in a process beside the worker, which can be killed and imports the
        handler by name. Payload keys fill parameters by name; a parameter of type Job gets the
        job; a single parameter whose type is a dataclass or pydantic model gets the whole payload.
        `queue`, `max_attempts` and `timeout` are what jobs of this kind get when they leave it out
        at enqueue. `retry`: the wait before the next attempt, as a timedelta, a list of them (the
        last one repeats), or a function of the failed attempt's number (from 1); without it the
        default backoff, a minute doubling.

        Raises UsageError for what cannot be, and for a kind that has a handler already.
        """
        check(NewJob(kind, {}, queue=queue, max_attempts=max_attempts, timeout=timeout))
        check_retry(retry)
        if isolation not in (None, "process"):
            raise UsageError(f"isolation: give 'process' or leave it out, not {isolation!r}")

        def register(function: F) -> F:
            if kind in self._handlers:
                raise UsageError(f"kind {kind} has two handlers: give each kind one")
            self._handlers[kind] = Handler(
                kind=kind,
                function=function,
                isolation=_isolation(function, wanted=isolation),
                binding=bind(function, kind=kind),
                queue=queue,
                max_attempts=max_attempts,
                timeout=timeout,
                retry=retry,
            )
            return function

        return register


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine."""
    call = getattr(function, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _isolation(function: Callable[..., Any], *, wanted: str | None) -> Isolation:
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise UsageError(f"handler {function.__qualname__}: a generator cannot handle jobs")
    if wanted is not None:
        refer(function)
        return Isolation(wanted)
    return Isolation.ASYNC if is_async(function) else Isolation.THREAD
