"""The handlers of `pgq demo`: what handlers look like, and the four ways that a job may take."""

from datetime import timedelta
from typing import Any

import pgq

app = pgq.App()

JOBS = {"quick": 40, "flaky": 6, "hopeless": 2, "patient": 2}
"""How many jobs of each kind the demo enqueues."""

_SHORTLY = timedelta(milliseconds=200)
_told_to_wait: set[int] = set()


@app.job("quick")
async def quick(number: int) -> dict[str, int]:
    """Done at once, with a result."""
    return {"square": number * number}


@app.job("flaky", retry=_SHORTLY)
def flaky(number: int, job: pgq.Job) -> str:
    """Fails at first, and is tried again."""
    if job.attempt == 1:
        raise ConnectionError(f"the mail server does not answer (message {number})")
    return "sent"


@app.job("hopeless")
def hopeless(number: int) -> None:
    """Fails for good, whatever attempts are left: the dead letter."""
    raise pgq.Fail(f"there is no customer {number}")


@app.job("patient")
async def patient(number: int, job: pgq.Job) -> Any:
    """Not yet: asks to come again, which is no failed attempt."""
    if job.id not in _told_to_wait:
        _told_to_wait.add(job.id)
        return pgq.snooze(_SHORTLY)
    return f"report {number} was ready at last"
