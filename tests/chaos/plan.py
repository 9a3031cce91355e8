"""What the monkey will do and when, and which jobs are enqueued: decided by a seed. Pure."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from pgq import NewJob


class Fault(StrEnum):
    """What is done to a worker, a backend or the server."""

    KILL = "SIGKILL"
    PAUSE = "SIGSTOP, short"
    FREEZE = "SIGSTOP, past the visibility timeout"
    TELL = "SIGTERM"
    TERMINATE = "backend terminated"
    CRASH = "server crashed"


LONGEST = 15.0
"""Seconds that a fault lasts at most."""

WEIGHTS = {
    Fault.KILL: 8,
    Fault.PAUSE: 3,
    Fault.FREEZE: 2,
    Fault.TELL: 3,
    Fault.TERMINATE: 6,
    Fault.CRASH: 2,
}


@dataclass(frozen=True, slots=True)
class Deed:
    """One fault, so many seconds after the start, for so many seconds where it lasts."""

    at: float
    fault: Fault
    seconds: float


def deeds(seed: int, *, seconds: float, every: float) -> Sequence[Deed]:
    """Faults for a run: first each one once, the longest in front, then by weight."""
    dice = random.Random(f"deeds {seed}")
    others = [fault for fault in Fault if fault is not Fault.FREEZE]
    dice.shuffle(others)
    first = [Fault.FREEZE, *others]
    planned = []
    at = every
    while at < seconds:
        fault = first.pop(0) if first else dice.choices(*zip(*WEIGHTS.items(), strict=True))[0]
        if fault is Fault.FREEZE and at + LONGEST > seconds:
            fault = Fault.PAUSE  # it would outlast the run
        planned.append(Deed(at, fault, _lasts(fault, dice)))
        at += every * dice.uniform(0.5, 1.5)
    return planned


def _lasts(fault: Fault, dice: random.Random) -> float:
    match fault:
        case Fault.PAUSE:
            return dice.uniform(4.5, 6.5)  # longer than a worker without its lock may be silent
        case Fault.FREEZE:
            return dice.uniform(11.5, LONGEST)
        case Fault.CRASH:
            return dice.uniform(0.0, 3.0)
        case _:
            return 0.0


PLENTY = 10
"""Attempts of most jobs: enough to end done."""


def jobs(seed: int) -> Iterator[NewJob]:
    """Jobs without end: most of them quick, some slow, failing, late, hopeless or deaf."""
    dice = random.Random(f"jobs {seed}")
    makers, weights = zip(*MIX, strict=True)
    while True:
        (make,) = dice.choices(makers, weights)
        yield make(dice)


def _job(kind: str, *seconds: float, fails: int = 0, attempts: int = PLENTY) -> NewJob:
    """`seconds`: how long each attempt works, the last one of them ever after."""
    payload: dict[str, Any] = {"seconds": list(seconds), "fails": fails}
    return NewJob(kind, payload, max_attempts=attempts)


def _limited(dice: random.Random) -> NewJob:
    kind = dice.choice(["coroutine", "thread"])
    job = _job(kind, 3.0, 0.02)
    return NewJob(job.kind, job.payload, max_attempts=PLENTY, timeout=timedelta(seconds=1))


MIX = [
    (lambda dice: _job("coroutine", dice.uniform(0, 0.1)), 55),
    (lambda dice: _job("thread", dice.uniform(0, 0.1)), 20),
    (lambda dice: _job("coroutine", dice.uniform(1, 4)), 8),
    (lambda dice: _job("thread", dice.uniform(0.5, 3)), 6),
    (lambda dice: _job("coroutine", 0.05, fails=dice.randint(1, 2)), 2),
    (lambda dice: _job("thread", 0.05, fails=dice.randint(1, 2)), 2),
    (_limited, 2),
    (lambda dice: _job("coroutine", dice.uniform(1, 3), attempts=2), 2),
    (lambda _: _job("coroutine", 0.01, fails=PLENTY, attempts=3), 2),
    (lambda dice: _job("deaf thread", dice.uniform(3, 12)), 1),
]
