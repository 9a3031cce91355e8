"""Handlers that run in processes of their own, which import them from here. $DESK is for files."""

import asyncio
import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

import pgq

if "FAIL_TO_IMPORT" in os.environ:
    raise ImportError("told not to be imported")

if "SLOW_TO_IMPORT" in os.environ:
    time.sleep(2)

app = pgq.App()

SLEEP = "select pg_catalog.pg_sleep(600)"


def desk(name: str) -> Path:
    return Path(os.environ["DESK"], name)


class TwoWords(Exception):
    """One that cannot be pickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")
        self.lock = threading.Lock()


@app.job("pid", isolation="process")
def pid() -> int:
    return os.getpid()


@app.job("greet", isolation="process")
async def greet(name: str, job: pgq.Job) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"name": name, "attempt": job.attempt, "kind": job.kind}


def snooze() -> object:
    return pgq.snooze(timedelta(minutes=5))


def refuse() -> None:
    raise pgq.Fail("for good")


def try_later() -> None:
    raise pgq.Retry("busy", after=timedelta(minutes=7))


def raise_two_words() -> None:
    raise TwoWords("no", "luck")


def give_an_object() -> object:
    return object()


def spell(numbers: list[int], text: str, job: pgq.Job) -> object:
    return [job.payload, sum(numbers), text]


def depth(tree: list[Any]) -> int:
    found = 0
    while tree:
        found, tree = found + 1, tree[0]
    return found


@app.job("exit", isolation="process")
def end_process(code: int) -> None:
    print("about to end", flush=True)
    os._exit(code)


def end_by(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(60)


def call_nothing() -> None:
    ctypes.string_at(0)


def close_all_descriptors() -> None:
    os.closerange(3, 100)
    time.sleep(60)


def leave_by_sys_exit() -> None:
    sys.exit(3)


def fork_and_both_return() -> int:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return child


def names() -> list[str | None]:
    return [os.environ.get("PGAPPNAME"), str(Path.cwd()), sys.argv[0]]


def own_connection(job: pgq.Job) -> list[Any]:
    with job.connect() as conn:
        found = conn.execute("select pg_catalog.current_setting('application_name')").fetchone()
        return [*(found or ()), "PGPASSWORD" in os.environ, sys.argv]


def descriptors() -> list[str]:
    """What this process has open besides its standard streams and what it needs to be told."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except OSError:
            continue
    return [name for name in found if name.startswith("socket:")]


def report_progress(job: pgq.Job) -> None:
    job.progress(0.5, "half way")
    desk("half").touch()
    while not desk("go").exists():
        time.sleep(0.01)


app.job("report progress", isolation="process")(report_progress)


def hold_memory(megabytes: int) -> int:
    _held.append(b"x" * (megabytes * 1_048_576))
    return os.getpid()


_held: list[bytes] = []


# What is written and logged.


@app.job("write", isolation="process")
def write_on_all_ways(*, fail: bool) -> None:
    print("by print")
    sys.stderr.write("by stderr\n")
    os.write(1, b"by descriptor\n")
    subprocess.run(["echo", "by a child"], check=True)
    logging.getLogger("shop").info("by logging")
    if fail:
        raise ValueError("no")


def write_much(megabytes: int) -> None:
    subprocess.run(f"yes | head -c {megabytes}M; printf 'a\\000b\\377c\\n'", shell=True, check=True)
    raise ValueError("that was much")


def leave_a_writer() -> str:
    """Something that it started keeps its output open, and goes on."""
    subprocess.Popen(["sh", "-c", "while :; do echo still here; sleep 0.01; done"])
    return "done"


# What is to be stopped.


@app.job("obey", isolation="process")
def obey(job: pgq.Job) -> None:
    desk(f"started-{job.attempt}").touch()
    assert job.cancelled.wait(60)
    raise InterruptedError("asked to stop")


@app.job("was asked", isolation="process")
def was_asked(job: pgq.Job) -> bool:
    return job.cancelled.wait(0.1)


@app.job("obey on the loop", isolation="process")
async def obey_on_the_loop(job: pgq.Job) -> None:
    desk(f"started-{job.attempt}").touch()
    try:
        await asyncio.Event().wait()
    finally:
        desk("cleaned").touch()


@app.job("finish all the same", isolation="process")
def finish_all_the_same(job: pgq.Job) -> str:
    assert job.cancelled.wait(60)
    return "done all the same"


@app.job("clean up", isolation="process")
def clean_up(job: pgq.Job) -> None:
    """Ignore the flag; tidy when SIGTERM comes."""
    desk(f"started-{job.attempt}").touch()
    try:
        time.sleep(600)
    finally:
        desk("cleaned").touch()


@app.job("stubborn", isolation="process")
def stubborn(line: str) -> None:
    """Ignore all that can be ignored, together with a child and a grandchild that left the group.

    All hold the lifeline.
    """
    with Path(line).open("w") as held:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        script = "trap '' TERM; (sleep 300 &); sleep 300"
        subprocess.Popen(["sh", "-c", script], pass_fds=[held.fileno()])
        bare = {"PATH": os.environ["PATH"]}
        subprocess.Popen(["setsid", "sh", "-c", script], pass_fds=[held.fileno()], env=bare)
        held.write("up\n")
        held.flush()
        while True:
            time.sleep(60)


@app.job("hold the interpreter", isolation="process")
def hold_the_interpreter(seconds: float) -> None:
    """Let no other thread of this process run."""
    desk("started").touch()
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


@app.job("query for ever", isolation="process")
def query_for_ever(job: pgq.Job) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    desk("pid").write_text(str(os.getpid()))
    while True:
        try:
            with job.connect() as conn:
                conn.execute(SLEEP)
        except psycopg.Error:
            continue


@app.job("meet", isolation="process")
def meet(name: str, other: str) -> None:
    """Wait for another job that runs at the same time."""
    desk(name).touch()
    until = time.monotonic() + 60
    while not desk(other).exists():
        assert time.monotonic() < until
        time.sleep(0.01)


@app.job("hold a line", isolation="process")
def hold_a_line(line: str, interpreter: bool) -> None:
    """Hold a lifeline together with a grandchild, for ever; let no other thread run if told."""
    with Path(line).open("w") as held:
        subprocess.Popen(["sh", "-c", "(sleep 300 &); sleep 300"], pass_fds=[held.fileno()])
        held.write("up\n")
        held.flush()
        if interpreter:
            ctypes.PyDLL(None).sleep(600)
        time.sleep(600)


@app.job("leave a child", isolation="process")
def leave_a_child(line: str) -> None:
    """Leave a process that holds a lifeline."""
    subprocess.Popen(["sh", "-c", 'exec 9>"$0"; echo up >&9; sleep 300', line])


@app.job("block the loop")
async def block_the_loop() -> None:
    """Let nothing else happen on the worker's own event loop until there is a file `go`."""
    desk("blocking").touch()
    until = time.monotonic() + 60
    while not desk("go").exists() and time.monotonic() < until:
        time.sleep(0.01)  # noqa: ASYNC251 - the fault on purpose


@app.job("tick")
async def tick() -> None:
    """Something on the worker's own event loop."""
