"""The child processes of a worker: started when needed, kept for the next job, replaced in time."""

import threading
import time

from pgq.runner.keeper import Keeper
from pgq.runner.spawned import LEAVE_WITHIN, Child, Recycling

_CLOSED = "the worker ends"


class Pool:
    """All children of a worker. Its methods may be called from any thread."""

    def __init__(self, keeper: Keeper, recycling: Recycling) -> None:
        self.keeper = keeper
        self._recycling = recycling
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        """The one used last is used next: what is not needed stays cold."""
        self._busy: set[Child] = set()
        self._leaving: list[Child] = []
        self._closed = False

    def take(self) -> Child:
        """A child for one job: an idle one, else a new one. OSError if none can be started."""
        with self._lock:
            if self._closed:
                raise OSError(_CLOSED)
            while self._idle:
                child = self._idle.pop()
                if child.alive and not child.silent:
                    self._busy.add(child)
                    return child
                self._dismiss(child)
        return self._start()

    def _start(self) -> Child:
        child = Child(self.keeper)
        with self._lock:
            if not self._closed:
                self._busy.add(child)
                return child
        child.kill()
        child.bury(seconds=1.0)
        raise OSError(_CLOSED)

    def give_back(self, child: Child, *, memory: int) -> None:
        """The job of this child has ended well enough for it to run another one."""
        worn = child.worn(self._recycling, memory=memory)
        with self._lock:
            self._busy.discard(child)
            if worn or self._closed:
                child.let_go()
                self._leaving.append(child)
            else:
                self._idle.append(child)

    def discard(self, child: Child) -> None:
        """This child has ended, or is to end now."""
        with self._lock:
            self._busy.discard(child)
            self._dismiss(child)

    def sweep(self) -> None:
        """Bury what has ended; end what was let go and stays. Never waits."""
        with self._lock:
            for child in [child for child in self._idle if not child.alive]:
                self._idle.remove(child)
                self._dismiss(child)
            self._leaving = [child for child in self._leaving if not child.bury(seconds=0)]
            for child in self._leaving:
                if time.monotonic() >= child.leave_until:
                    child.kill()

    def close(self) -> None:
        """End all children, within seconds."""
        with self._lock:
            self._closed = True
            for child in self._idle:
                child.let_go()
            for child in self._busy:
                child.group.kill()  # its thread buries it
            leaving = self._idle + self._leaving
            self._idle, self._leaving = [], []
        until = time.monotonic() + LEAVE_WITHIN
        for child in leaving:
            if not child.bury(seconds=max(0.0, until - time.monotonic())):
                child.kill()
                child.bury(seconds=1.0)

    def _dismiss(self, child: Child) -> None:
        child.kill()
        if not child.bury(seconds=0):
            self._leaving.append(child)
