"""What runs in a child process: one job after another, as the worker tells it over a socket.

The jobs run in the main thread; another one listens on a second socket, so that a running job
hears that it is asked to stop, and a short one costs no change of threads. When the worker is gone,
the child ends with all that its job has started.
"""

import asyncio
import contextlib
import faulthandler
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Coroutine, Iterator
from types import FrameType
from typing import Any, NoReturn

from pgq.model import ClaimedJob, Failed, Verdict
from pgq.registry import Handler
from pgq.registry.app import Isolation, is_async
from pgq.registry.binding import bind
from pgq.registry.reference import Reference
from pgq.runner import Backing, fork, view
from pgq.runner.forward import Forwarder
from pgq.runner.verdict import MAX_ERROR, describe, raised, returned, trace
from pgq.runner.wire import (
    Answer,
    Frames,
    Loaded,
    Progress,
    Up,
    Work,
    pack_up,
    unpack_ask,
    unpack_work,
)
from pgq.text import read_json, storable

CHUNK = 65536


def main(work: int, asks: int) -> None:
    """Serve the worker at the other ends of these sockets until it lets go."""
    del sys.argv[1:]
    faulthandler.enable()  # what a crash leaves on stderr is kept with the failed attempt
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    Child(_own(work), _own(asks)).serve()


def _own(descriptor: int) -> socket.socket:
    """The socket, kept from all that the jobs start."""
    with socket.socket(fileno=descriptor) as inheritable:
        kept = inheritable.dup()
    fork.own(kept.fileno())
    return kept


class Terminated(SystemExit):
    """SIGTERM came: the handler may clean up, then the process ends."""


class _Running:
    """A job in this process, and how it is asked to stop."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.cancelled = threading.Event()
        self._task: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None

    def ask(self) -> None:
        """Called by the listening thread."""
        self.cancelled.set()
        attended = self._task  # read once: the handler may end just now
        if attended is not None:
            loop, task = attended
            with contextlib.suppress(RuntimeError):  # the loop has just been closed
                loop.call_soon_threadsafe(task.cancel)

    async def attend(self, handler: Coroutine[Any, Any, Any]) -> Any:
        """Await a handler so that `ask` cancels it."""
        task = asyncio.current_task()
        assert task is not None
        self._task = asyncio.get_running_loop(), task
        if self.cancelled.is_set():
            task.cancel()
        try:
            return await handler
        finally:
            self._task = None


class Child:
    """This process."""

    def __init__(self, work: socket.socket, asks: socket.socket) -> None:
        self._work = work
        self._asks = asks
        self._sending = threading.Lock()
        self._current: _Running | None = None
        self._asked: int | None = None
        """The lease that was asked to stop last; it may be heard before its job is."""
        self._handlers: dict[tuple[Reference, str], Handler] = {}
        self._logs = Forwarder(self._send)
        self._terminated = False
        self._telling = False
        """Whether an answer is on its way, which SIGTERM must not cut."""

    def serve(self) -> None:
        """Run what the worker gives until it lets go of this process."""
        threading.Thread(target=self._listen, name="pgq-listen", daemon=True).start()
        frames = Frames()
        signal.signal(signal.SIGTERM, self._on_term)
        while chunk := self._work.recv(CHUNK):
            for frame in frames.feed(chunk):
                self._serve(unpack_work(frame))

    def _serve(self, work: Work) -> None:
        # Each time: a handler may have put its own in place.
        signal.signal(signal.SIGTERM, self._on_term)
        self._current = running = _Running(work)
        if self._asked == work.job.lease:
            running.ask()
        try:
            verdict, gave_up = self._perform(running)
        except Terminated:
            self._die()
        self._telling = True
        fork.end_if_child()
        self._current = None
        signal.setitimer(signal.ITIMER_REAL, 0)  # an alarm that it left would strike the next job
        _flush()
        self._send(Answer(work.job.lease, verdict, gave_up, _memory()))
        self._telling = False
        if self._terminated:
            self._die()

    def _on_term(self, number: int, _frame: FrameType | None) -> None:
        self._terminated = True
        if not self._telling:
            raise Terminated(128 + number)

    def _die(self) -> NoReturn:
        """End by SIGTERM, so that the worker sees what ended this process."""
        _flush()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
        os._exit(128 + signal.SIGTERM)

    def _listen(self) -> None:
        frames = Frames()
        try:
            while chunk := self._asks.recv(CHUNK):
                for frame in frames.feed(chunk):
                    self._hear(unpack_ask(frame))
        except OSError:  # a handler has closed what is not its own: the worker sees it
            return
        if self._current is not None:
            os.killpg(os.getpid(), signal.SIGKILL)

    def _hear(self, lease: int) -> None:
        self._asked = lease
        running = self._current
        if running is not None and running.work.job.lease == lease:
            running.ask()

    def _perform(self, running: _Running) -> tuple[Verdict, bool]:
        """Run a job; gives what became of it, and whether it gave up because it was asked to."""
        work = running.work
        try:
            handler = self._handler(work)
        except Terminated:
            raise
        except BaseException as error:  # noqa: BLE001 - an import runs the application's code
            shown = storable(describe(error), MAX_ERROR)
            return Failed(f"{work.reference} could not be imported: {shown}", trace(error)), False
        self._logs.attach(work.job.lease, least=work.log_level)
        job = work.job._replace(payload=read_json(work.payload))
        try:
            with _named(job.application_name):
                return returned(self._call(handler, job, running)), False
        except Terminated:
            raise
        except BaseException as error:  # noqa: BLE001 - SystemExit too is only this job's end
            return raised(handler, job, error), running.cancelled.is_set()

    def _call(self, handler: Handler, job: ClaimedJob, running: _Running) -> Any:
        arguments = handler.binding.arguments(job.payload)
        if handler.binding.job_parameter is not None:
            backing = Backing(running.work.dsn, self._note_progress, _nothing, _nothing)
            arguments[handler.binding.job_parameter] = view(job, running.cancelled, backing)
        if is_async(handler.function):
            return asyncio.run(running.attend(handler.function(**arguments)))
        return handler.function(**arguments)

    def _handler(self, work: Work) -> Handler:
        known = self._handlers.get((work.reference, work.job.kind))
        if known is not None:
            return known
        function = work.reference.load()
        kind = work.job.kind
        self._handlers[work.reference, kind] = loaded = Handler(
            kind=kind,
            function=function,
            isolation=Isolation.PROCESS,
            binding=bind(function, kind=kind),
            queue=None,
            max_attempts=None,
            timeout=None,
            retry=None,  # the worker has it
        )
        self._send(Loaded(work.job.lease))
        return loaded

    def _note_progress(self, job: ClaimedJob, text: str) -> None:
        self._send(Progress(job.lease, text))

    def _send(self, message: Up) -> None:
        with self._sending, contextlib.suppress(OSError):  # the worker may be gone
            self._work.sendall(pack_up(message))


@contextlib.contextmanager
def _named(application_name: str) -> Iterator[None]:
    """What connects to a database by libpq's defaults in the body has this name."""
    before = os.environ.get("PGAPPNAME")
    os.environ["PGAPPNAME"] = application_name
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("PGAPPNAME", None)
        else:
            os.environ["PGAPPNAME"] = before


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _nothing(*_: object) -> None:
    """What the worker does by itself for a job in a process."""


def _memory() -> int:
    """Bytes that this process holds; the most that it ever held where the system tells no more."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as statm:  # noqa: PTH123 - after each job
            pages = int(statm.read().split()[1])
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return pages * _PAGE


_PAGE = resource.getpagesize()
