"""A background-job queue in PostgreSQL: the public names.

They are loaded when first used, so that importing pgq loads no driver.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgq.client import enqueue, enqueue_many, wait
    from pgq.errors import (
        JobCancelled,
        JobFailed,
        JobNotFound,
        PayloadError,
        PgqError,
        Refused,
        ResultDropped,
        SchemaMismatch,
        Unavailable,
        UsageError,
        WaitTimeout,
    )
    from pgq.model import Enqueued, NewJob, Status
    from pgq.registry import App, Cancel, Fail, Job, Retry, snooze

_HOMES = {
    "pgq.client": ("enqueue", "enqueue_many", "wait"),
    "pgq.errors": (
        "JobCancelled",
        "JobFailed",
        "JobNotFound",
        "PayloadError",
        "PgqError",
        "Refused",
        "ResultDropped",
        "SchemaMismatch",
        "Unavailable",
        "UsageError",
        "WaitTimeout",
    ),
    "pgq.model": ("Enqueued", "NewJob", "Status"),
    "pgq.registry": ("App", "Cancel", "Fail", "Job", "Retry", "snooze"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "App",
    "Cancel",
    "Enqueued",
    "Fail",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobNotFound",
    "NewJob",
    "PayloadError",
    "PgqError",
    "Refused",
    "ResultDropped",
    "Retry",
    "SchemaMismatch",
    "Status",
    "Unavailable",
    "UsageError",
    "WaitTimeout",
    "enqueue",
    "enqueue_many",
    "snooze",
    "wait",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pgq' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
