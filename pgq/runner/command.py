"""Runs a shell command per job (`pgq worker --exec`): payload on stdin, PGQ_* in the environment.

Exit code 0 is done, 75 (EX_TEMPFAIL of sysexits.h) snoozes for a minute, anything else fails the
attempt with the tail of what the command wrote.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import IO

from pgq.model import ClaimedJob, Failed, Snoozed, Verdict
from pgq.runner.interrupt import Stop
from pgq.runner.keeper import Keeper
from pgq.runner.output import Tail
from pgq.runner.thread import Perform
from pgq.runner.verdict import DONE, MAX_ERROR, describe
from pgq.text import Unreadable, storable

SNOOZE_CODE = 75
SNOOZE_DELAY = timedelta(minutes=1)
KILL_AFTER = 5.0
"""Seconds between SIGTERM and SIGKILL."""

# The command waits for a first line before it starts, so that the keeper knows it by then. Closed
# standard input instead (the worker died) ends it at once.
_GATE = 'read -r _ || exit 1; exec /bin/sh -c "$0"'


def command_perform(command: str, keeper: Keeper) -> Perform:
    """Perform jobs by running `command` in a shell, in a session of its own."""

    def perform(job: ClaimedJob, stop: Stop, /) -> Verdict | None:
        try:
            process = _start(command, job)
        except OSError as error:
            return Failed(f"the command could not be started: {storable(str(error), MAX_ERROR)}")
        with keeper.watching(process.pid):
            try:
                return _attend(process, job, stop)
            except Exception as error:  # noqa: BLE001 - whatever goes wrong is this job's end
                return Failed(storable(describe(error), MAX_ERROR))
            finally:
                _end_group(process)

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


def _attend(process: subprocess.Popen[bytes], job: ClaimedJob, stop: Stop) -> Verdict | None:
    """Feed and watch a command until it ends; its grandchildren may keep the pipes open."""
    assert process.stdin is not None
    assert process.stdout is not None
    given = job.payload
    payload = given.text if isinstance(given, Unreadable) else json.dumps(given, ensure_ascii=False)
    pending = memoryview(f"\n{payload}\n".encode())
    tail = Tail()
    kill_at: float | None = None
    os.set_blocking(process.stdin.fileno(), False)
    os.set_blocking(process.stdout.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdin, selectors.EVENT_WRITE)
        selector.register(process.stdout, selectors.EVENT_READ)
        while process.poll() is None:
            if not selector.get_map():  # usually its output ends a moment before it does
                _wait_briefly(process)
            for key, _ in selector.select(timeout=0.05 if selector.get_map() else 0):
                if key.fileobj is process.stdin:
                    pending = _feed(process.stdin, pending, selector)
                elif not _drain(process.stdout, tail):
                    selector.unregister(process.stdout)
            kill_at = _escalate(process, stop, kill_at)
    _drain(process.stdout, tail)
    # One that ended before it was told to stop has ended by itself.
    return None if kill_at is not None else _verdict(process.returncode, tail)


def _wait_briefly(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=0.05)


def _escalate(process: subprocess.Popen[bytes], stop: Stop, kill_at: float | None) -> float | None:
    """SIGTERM when the job is asked to stop, SIGKILL when that did not help; gives when."""
    if stop.cause is None:
        return None
    if kill_at is None:
        _signal_group(process, signal.SIGTERM)
        return time.monotonic() + KILL_AFTER
    if time.monotonic() >= kill_at:
        _signal_group(process, signal.SIGKILL)
    return kill_at


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


def _verdict(code: int, tail: Tail) -> Verdict:
    if code == 0:
        return DONE
    if code == SNOOZE_CODE:
        return Snoozed(SNOOZE_DELAY)
    if code < 0:
        ending = f"the command was ended by {signal.Signals(-code).name}"
    else:
        ending = f"the command ended with exit code {code}"
    text = tail.text()
    said = f"{ending}: {text.splitlines()[-1]}" if text else ending
    return Failed(storable(said, MAX_ERROR), output=text)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        process.send_signal(number)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing of a command behind: what it started ends with it."""
    _signal_group(process, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None and not pipe.closed:
            pipe.close()
