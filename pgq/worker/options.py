"""What a worker is told, and what follows from it. Pure."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from pgq.client import check
from pgq.errors import UsageError
from pgq.model import NewJob
from pgq.registry import App
from pgq.registry.app import Isolation
from pgq.registry.reference import check_reference
from pgq.worker import log

ASYNC_CONCURRENCY = 100


@dataclass(frozen=True, slots=True)
class Options:
    """How a worker works. Exactly one of `app` and `command`."""

    dsn: str
    app: App | None = None
    command: str | None = None
    """A shell command to run for each job."""
    queues: Sequence[str] = ()
    """Which queues to serve, in this order; none: all that the handlers name, and `default`."""
    kinds: Sequence[str] = ()
    """Serve only these kinds; none: all that the app handles, or with a command any kind."""
    concurrency: int | None = None
    """Jobs at once; None: 100 for async handlers, twice the cores for others."""
    drain: bool = False
    """End when nothing is due."""
    grace: timedelta | None = None
    """How long running jobs may go on after the first signal; None: for ever."""
    poll: timedelta = timedelta(seconds=2)
    """Longest time between two looks of an idle worker."""
    recycle_jobs: int = 1000
    """A process that runs handlers is replaced after so many jobs."""
    recycle_mb: int = 512
    """It is also replaced after a job that left it so many megabytes above its first job."""
    log_format: str = "text"
    log_level: str = "info"

    def __post_init__(self) -> None:
        if (self.app is None) == (self.command is None):
            raise UsageError("worker: give an app (--app MODULE:APP) or a command (--exec COMMAND)")
        self._check_names()
        if self.concurrency is not None and not 1 <= self.concurrency <= 10_000:
            raise UsageError("concurrency: give a whole number from 1 to 10000")
        if not timedelta(milliseconds=10) <= self.poll <= timedelta(hours=1):
            raise UsageError("poll: give a duration from 0.01s to 1h")
        if self.grace is not None and self.grace < timedelta(0):
            raise UsageError("grace: must not be negative")
        if self.recycle_jobs < 1 or self.recycle_mb < 1:
            raise UsageError("recycle: give whole numbers from 1")
        if self.log_format not in log.FORMATS:
            raise UsageError(f"log format: give one of {', '.join(log.FORMATS)}")
        if self.log_level not in log.LEVELS:
            raise UsageError(f"log level: give one of {', '.join(log.LEVELS)}")
        if self.app is not None:
            self._check_kinds(self.app)

    def _check_names(self) -> None:
        if self.command is not None and not self.command.strip():
            raise UsageError("--exec: give a command")
        for queue in self.queues:
            check(NewJob("any", {}, queue=queue))
        for kind in self.kinds:
            check(NewJob(kind, {}))

    def _check_kinds(self, app: App) -> None:
        if not app.handlers:
            raise UsageError("the app has no handlers: add one with @app.job(KIND)")
        unknown = [kind for kind in self.kinds if kind not in app.handlers]
        if unknown:
            raise UsageError(
                f"the app has no handler for kind {unknown[0]!r}; it has "
                + ", ".join(sorted(app.handlers))
            )
        for kind in self.served_kinds or ():
            handler = app.handlers[kind]
            if handler.isolation is Isolation.PROCESS:
                check_reference(handler.function)

    @property
    def doubts(self) -> list[str]:
        """What is allowed and most likely a mistake, a line each."""
        handlers = self.app.handlers if self.app else {}
        meant = {*handlers, *(handler.queue for handler in handlers.values())}
        return [
            f"{option} {name!r} is one name with a comma in it: give {option} once for each"
            for option, names in (("--queue", self.queues), ("--kind", self.kinds))
            for name in names
            if "," in name and name not in meant
        ]

    @property
    def served_queues(self) -> list[str]:
        """The queues to look into, each once."""
        if self.queues:
            return list(dict.fromkeys(self.queues))
        named = [handler.queue for handler in self.app.handlers.values()] if self.app else []
        return list(dict.fromkeys([*(queue for queue in named if queue), "default"]))

    @property
    def served_kinds(self) -> list[str] | None:
        """The kinds to claim; None for every kind."""
        if self.app is not None:
            return [kind for kind in self.app.handlers if not self.kinds or kind in self.kinds]
        return list(dict.fromkeys(self.kinds)) or None

    def capacity(self, isolation: Isolation | None) -> int:
        """How many jobs at once run this way; None stands for a command."""
        if self.concurrency is not None:
            return self.concurrency
        return ASYNC_CONCURRENCY if isolation is Isolation.ASYNC else 2 * (os.cpu_count() or 1)
