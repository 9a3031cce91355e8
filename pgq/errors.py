"""Every error that pgq raises on purpose, by who must act on it.

Each is one line: what, which, what to do. Fields come first and the text is made from them.
`exit_code` is what the command line ends with. Nothing here knows the driver.
"""

from typing import ClassVar


class PgqError(Exception):
    """Base of all errors of pgq. Its text is one line and holds no secret."""

    exit_code: ClassVar[int] = 1


class UsageError(PgqError):
    """The caller gave something that cannot be: a payload, a name, a number, a handler."""

    exit_code = 2


class PayloadError(UsageError):
    """A payload or result that PostgreSQL could not hold, or no reader could read back."""

    def __init__(self, path: str, problem: str, *, what: str = "payload") -> None:
        self.path, self.problem, self.what = path, problem, what
        super().__init__(f"{what}: {problem} at {path}" if path else f"{what}: {problem}")


class Unavailable(PgqError):
    """The database cannot be reached now, or refuses this login. Trying again may help."""

    exit_code = 3


class ConnectionLost(Unavailable):
    """An open connection broke; what it was told last may or may not have been done."""


class Conflict(PgqError):
    """Another transaction came between (deadlock, serialization, lock or statement timeout).

    Nothing was changed; the same transaction, sent again, may succeed.
    """


class SchemaMismatch(PgqError):
    """The schema `pgq` in the database is not the one that this program works with."""

    exit_code = 3

    def __init__(self, *, found: int | None, needed: int) -> None:
        self.found, self.needed = found, needed
        if found is None:
            text = "the schema pgq is not installed in this database, or not whole: run pgq install"
        elif found > needed:
            text = (
                f"the schema pgq is at version {found}, newer than this program ({needed}): "
                "upgrade the program (pip install -U pgq-toolkit)"
            )
        else:
            text = (
                f"the schema pgq is at version {found}, older than this program ({needed}): "
                "run pgq install"
            )
        super().__init__(text)


class Refused(PgqError):
    """Refused for safety; nothing was changed."""

    exit_code = 5


class WorkerDead(PgqError):
    """This worker was declared dead by others, and its jobs were given away; or it is unknown."""


class JobNotFound(PgqError):
    """No job has this id."""

    def __init__(self, job_id: int) -> None:
        self.job_id = job_id
        super().__init__(f"job {job_id} does not exist")


class JobFailed(PgqError):
    """A job that was waited for ended `failed`."""

    def __init__(self, job_id: int, error: str | None) -> None:
        self.job_id, self.error = job_id, error
        super().__init__(f"job {job_id} failed: {error or 'no error was recorded'}")


class JobCancelled(PgqError):
    """A job that was waited for ended `cancelled`."""

    exit_code = 6

    def __init__(self, job_id: int) -> None:
        self.job_id = job_id
        super().__init__(f"job {job_id} was cancelled")


class WaitTimeout(PgqError):
    """A job that was waited for has not ended in time; it goes on."""

    exit_code = 7

    def __init__(self, job_id: int, status: str) -> None:
        self.job_id, self.status = job_id, status
        super().__init__(f"job {job_id} is still {status}")


class ResultDropped(PgqError):
    """A job is done, but what it returned could not be kept."""

    def __init__(self, job_id: int, reason: str) -> None:
        self.job_id, self.reason = job_id, reason
        super().__init__(f"job {job_id} is done, but its result was not kept: {reason}")
