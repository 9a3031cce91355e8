"""A handler may fork; its child must not go on as a second worker.

A forked child has the worker's sockets: it would keep the lock by which others see the worker
alive, and what it wrote would land in the worker's sessions. So in a child they are replaced at
once, and a child that comes back out of its handler ends. Nor is a signal to it one to the worker,
which hears of its own by a socket: none is delivered before that is replaced, too.
"""

import os
import signal
import threading
from collections import Counter

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_descriptors: Counter[int] = Counter()
"""How often each is ours: a number may be given to a new one before the old one is forgotten."""
_is_child = False
_masked = threading.local()
"""Which signals were blocked before this thread forks."""


def own(descriptor: int) -> None:
    """This descriptor is the worker's alone."""
    _descriptors[descriptor] += 1


def disown(descriptor: int) -> None:
    """This descriptor is about to be closed."""
    _descriptors[descriptor] -= 1
    if _descriptors[descriptor] <= 0:
        del _descriptors[descriptor]


def end_if_child() -> None:
    """End the process if it is a forked child of the worker."""
    if _is_child:
        os._exit(0)


def _before_fork() -> None:
    _masked.before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


def _unmask() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _masked.before)


def _after_fork() -> None:
    global _is_child  # noqa: PLW0603 - a process is a child or not
    _is_child = True
    if _descriptors:  # a worker's handlers of signals are its own; a child ends by them, as any
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in _descriptors:
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    _unmask()


os.register_at_fork(before=_before_fork, after_in_parent=_unmask, after_in_child=_after_fork)
