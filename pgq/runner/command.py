"""Runs a shell command per job (`pgq worker --exec`): payload on stdin, PGQ_* in the environment.

Exit code 0 is done, 75 (EX_TEMPFAIL of sysexits.h) snoozes for a minute, anything else fails the
attempt with the tail of what the command wrote.
"""

import json
import os
import selectors
import subprocess
from collections.abc import Mapping
from datetime import timedelta
from typing import IO

from pgq.model import ClaimedJob, Failed, Snoozed, Verdict
from pgq.registry.app import Isolation
from pgq.runner import Backing
from pgq.runner.group import Group, ending
from pgq.runner.grouped import Attempt
from pgq.runner.interrupt import Stop, interrupted
from pgq.runner.keeper import Keeper
from pgq.runner.ladder import LADDERS
from pgq.runner.output import Tail
from pgq.runner.thread import Perform
from pgq.runner.verdict import DONE, MAX_ERROR
from pgq.text import Unreadable, storable

SNOOZE_CODE = 75
SNOOZE_DELAY = timedelta(minutes=1)

# The command waits for a first line before it starts, so that the keeper knows it by then. Closed
# standard input instead (the worker died) ends it at once.
_GATE = 'read -r _ || exit 1; exec /bin/sh -c "$0"'


def command_perform(command: str, keeper: Keeper, backing: Backing) -> Perform:
    """Perform jobs by running `command` in a shell, in a session of its own."""

    def perform(job: ClaimedJob, stop: Stop, /) -> Verdict | None:
        try:
            process = _start(command, job)
        except OSError as error:
            return Failed(f"the command could not be started: {storable(str(error), MAX_ERROR)}")
        attempt = _Attempt(process, job, stop, backing)
        try:
            keeper.watch(process.pid)
            return attempt.run()
        finally:
            attempt.close()
            keeper.forget(process.pid)

    return perform


def _start(command: str, job: ClaimedJob) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _GATE, command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(os.environ, job),
        start_new_session=True,
    )


def environment(base: Mapping[str, str], job: ClaimedJob) -> dict[str, str]:
    """The environment of a command: the worker's, with the job's facts."""
    return dict(base) | {
        "PGQ_JOB_ID": str(job.id),
        "PGQ_QUEUE": _plain(job.queue),
        "PGQ_KIND": _plain(job.kind),
        "PGQ_ATTEMPT": str(job.attempts),
        "PGQ_MAX_ATTEMPTS": str(job.max_attempts),
        "PGAPPNAME": job.application_name,
    }


def _plain(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


class _Attempt(Attempt):
    """One job as a command."""

    def __init__(
        self, process: subprocess.Popen[bytes], job: ClaimedJob, stop: Stop, backing: Backing
    ) -> None:
        super().__init__(job, stop, Group(process), backing, ladder=LADDERS[Isolation.COMMAND])
        self._process = process

    def run(self) -> Verdict:
        """Attend the command to its end, and see to it that nothing of it is left."""
        self._begin()
        self._attend()
        forced = self._stop.rung is not None
        survivors = self._end(forced=forced)
        verdict = (
            interrupted(self._job, self._stop)
            if forced  # else it has ended by itself, whatever was asked since
            else _verdict(self._group.code, self._tail)
        )
        return self._tell(verdict, survivors)

    def _attend(self) -> None:
        """Feed and watch the command; its grandchildren may keep the pipes open."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        pending = _input(self._job)
        os.set_blocking(process.stdin.fileno(), False)
        os.set_blocking(process.stdout.fileno(), False)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdin, selectors.EVENT_WRITE)
            selector.register(process.stdout, selectors.EVENT_READ)
            while not self._group.ended and not self._in_vain:
                if not selector.get_map():  # usually its output ends a moment before it does
                    self._group.wait(0.05)
                for key, _ in selector.select(timeout=0.05 if selector.get_map() else 0):
                    if key.fileobj is process.stdin:
                        pending = _feed(process.stdin, pending, selector)
                    elif not _drain(process.stdout, self._tail):
                        selector.unregister(process.stdout)
                if not self._group.ended:
                    self._press()
        _drain(process.stdout, self._tail)

    def close(self) -> None:
        """Whatever happened: bury it."""
        self._group.kill()
        self._group.bury(1.0)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()


def _input(job: ClaimedJob) -> memoryview:
    given = job.payload
    payload = given.text if isinstance(given, Unreadable) else json.dumps(given, ensure_ascii=False)
    return memoryview(f"\n{payload}\n".encode())


def _feed(stdin: IO[bytes], pending: memoryview, selector: selectors.BaseSelector) -> memoryview:
    try:
        pending = pending[os.write(stdin.fileno(), pending[:65536]) :]
    except BlockingIOError:
        return pending
    except BrokenPipeError:  # the command does not read its input
        pending = pending[:0]
    if not pending:
        selector.unregister(stdin)
        stdin.close()
    return pending


def _drain(stdout: IO[bytes], tail: Tail) -> bool:
    """Read what is there, keep the end of it; false at the end of the output."""
    for _ in range(64):
        try:
            chunk = os.read(stdout.fileno(), 65536)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        tail.feed(chunk)
    return True


def _verdict(code: int | None, tail: Tail) -> Verdict:
    if code == 0:
        return DONE
    if code == SNOOZE_CODE:
        return Snoozed(SNOOZE_DELAY)
    said = f"the command {ending(code)}"
    text = tail.text()
    if text:
        said = f"{said}: {text.splitlines()[-1]}"
    return Failed(storable(said, MAX_ERROR))
