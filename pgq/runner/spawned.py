"""A child process as its worker has it.

It is spawned, never forked, in a session of its own: signals of a terminal do not reach it, and a
signal to its group reaches all that it started. It inherits no connection.
"""

import contextlib
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from pgq.registry.reference import Reference
from pgq.runner import fork
from pgq.runner.group import Group
from pgq.runner.keeper import Keeper
from pgq.runner.output import Tail
from pgq.runner.wire import MAX_UP, Frames, Up, Work, pack_ask, pack_work, unpack_up

LEAVE_WITHIN = 2.0
"""Seconds that a child has to end by itself once it is let go."""

CHUNK = 65536

# Shown by ps. -P: nothing beside the handlers' own path may stand in for our modules.
_PROGRAM = (
    "import sys; a, b, *sys.path = sys.argv[1:]; "
    "from pgq.runner.child import main; main(int(a), int(b))"
)


@dataclass(frozen=True, slots=True)
class Recycling:
    """When a child is replaced by a new one, after a job."""

    jobs: int
    """It has run so many."""
    megabytes: int
    """It holds so much more memory than after its first job."""


class Child:
    """A child process: what it is told, says, and writes. Used by one thread at a time."""

    def __init__(self, keeper: Keeper) -> None:
        """Start it; OSError if that cannot be, and then nothing of it is left."""
        self._keeper = keeper
        with contextlib.ExitStack() as undo, contextlib.ExitStack() as theirs:
            self._line, work = _pair(undo, theirs)
            self._asks, asks = _pair(undo, theirs)
            self._selector = undo.enter_context(selectors.DefaultSelector())
            self.process, self._output = _spawn(work.fileno(), asks.fileno())
            self.group = Group(self.process)
            undo.callback(self._abort)
            keeper.watch(self.process.pid)
            undo.pop_all()
        for ours in (self._line, self._asks):
            fork.own(ours.fileno())
            ours.settimeout(0)
        os.set_blocking(self._output.fileno(), False)
        self._selector.register(self._line, selectors.EVENT_READ)
        self._selector.register(self._output, selectors.EVENT_READ)
        self._pending = bytearray()
        self.silent = False
        """Whether it has closed its end, as the end of it does."""
        self.unread = False
        """Whether it ended before it had read all that it was given."""
        self._frames = Frames(limit=MAX_UP)
        self.jobs = 0
        self._loaded: set[tuple[Reference, str]] = set()
        self._memory_at_first: int | None = None
        self.leave_until = 0.0

    def _abort(self) -> None:
        self.group.kill()
        self.group.bury(1.0)
        self._output.close()

    def __repr__(self) -> str:
        return f"<Child {self.process.pid} {self.jobs} jobs>"

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return not self.group.ended

    def give(self, work: Work) -> None:
        """Send it a job, as far as it takes it now; `attend` goes on."""
        self._pending += pack_work(work)
        self._push()

    def has_loaded(self, work: Work) -> bool:
        """Whether it has imported the handler of this job before."""
        return (work.reference, work.job.kind) in self._loaded

    def note_loaded(self, work: Work) -> None:
        """It has imported the handler of this job."""
        self._loaded.add((work.reference, work.job.kind))

    def ask(self, lease: int) -> None:
        """Ask its job to stop."""
        with contextlib.suppress(OSError):  # it has ended, or has heard it often enough
            self._asks.send(pack_ask(lease))

    def attend(self, tail: Tail, *, seconds: float) -> Iterator[Up]:
        """Wait so long at most for what it says; its output goes into `tail`.

        What it wrote before it said something is read by then: its line is ready after its output.
        ValueError for what no child of ours says.
        """
        for key, events in self._selector.select(seconds):
            if key.fileobj is not self._line:
                if not self._read_output(tail):
                    self._selector.unregister(key.fileobj)
                continue
            if events & selectors.EVENT_WRITE:
                self._push()
            if events & selectors.EVENT_READ:
                yield from self._hear()

    def drain(self, tail: Tail) -> None:
        """Read what its output holds now."""
        self._read_output(tail)

    def worn(self, recycling: Recycling, *, memory: int) -> bool:
        """Whether it is to be replaced, after one more job that left it holding this memory."""
        self.jobs += 1
        if self._memory_at_first is None:
            self._memory_at_first = memory
        grown = memory - self._memory_at_first
        return self.jobs >= recycling.jobs or grown > recycling.megabytes * 1_048_576

    def let_go(self) -> None:
        """Let it end by itself, for a while."""
        self.leave_until = time.monotonic() + LEAVE_WITHIN
        self._hang_up()

    def kill(self) -> None:
        """End it and its group; `bury` it next."""
        self._hang_up()
        self.group.kill()

    def bury(self, *, seconds: float) -> bool:
        """Wait for its end; whether it has ended. Then nothing of it is left."""
        if not self.group.bury(seconds):
            return False
        self._hang_up()
        self._output.close()
        self._selector.close()
        self._keeper.forget(self.process.pid)
        return True

    def _hang_up(self) -> None:
        if self._line.fileno() >= 0:
            self._deafen()
            for ours in (self._line, self._asks):
                fork.disown(ours.fileno())
                ours.close()

    def _deafen(self) -> None:
        if not self.silent:
            self.silent = True
            self._selector.unregister(self._line)

    def _push(self) -> None:
        try:
            while self._pending:
                del self._pending[: self._line.send(self._pending[:CHUNK])]
        except BlockingIOError:
            pass
        except OSError:  # it has ended, as its silence will tell
            self._pending.clear()
            self.unread = True
        if not self.silent:
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._pending else 0)
            self._selector.modify(self._line, wanted)

    def _hear(self) -> Iterator[Up]:
        try:
            chunk = self._line.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:  # how a socket ends in which something was left
            self.unread = True
            chunk = b""
        if not chunk:
            self._deafen()
        for frame in self._frames.feed(chunk):
            yield unpack_up(frame)

    def _read_output(self, tail: Tail) -> bool:
        """Read what is there, within reason; false at the end of it."""
        for _ in range(64):
            try:
                chunk = os.read(self._output.fileno(), CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            tail.feed(chunk)
        return True


def _pair(ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[socket.socket, ...]:
    """Two ends of a line, each closed by its stack."""
    our_end, their_end = socket.socketpair()
    return ours.enter_context(our_end), theirs.enter_context(their_end)


def _spawn(*descriptors: int) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """A child process, and its output."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM, *map(str, descriptors), *sys.path],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=descriptors,
        start_new_session=True,
    )
    assert process.stdout is not None
    return process, process.stdout
