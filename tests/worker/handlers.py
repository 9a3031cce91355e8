"""The app of the workers that tests start as processes; files in $DESK tell and ask."""

import asyncio
import ctypes
import logging
import os
import sys
import time
from pathlib import Path

import pgq
from tests.support import diary

app = pgq.App()


def desk(name: str) -> Path:
    return Path(os.environ["DESK"], name)


@app.job("quick")
async def quick() -> None:
    """Do nothing."""


@app.job("linger")
async def linger() -> None:
    """Take a moment."""
    await asyncio.sleep(0.05)


@app.job("hold")
async def hold(job: pgq.Job) -> None:
    """Run until there is a file `go`."""
    desk(f"started-{job.attempt}").touch()
    while not desk("go").exists():  # noqa: ASYNC110 - it waits for another process
        await asyncio.sleep(0.01)


@app.job("keep a diary")
async def keep_a_diary(job: pgq.Job) -> None:
    """Note when it begins and ends; run until there is a file `go`."""
    with diary.noted(desk("diary"), job.id):
        while not desk("go").exists():  # noqa: ASYNC110 - it waits for another process
            await asyncio.sleep(0.01)


@app.job("note and linger")
async def note_and_linger(job: pgq.Job) -> None:
    """Note when it begins and ends; take a moment."""
    with diary.noted(desk("diary"), job.id):
        await asyncio.sleep(0.05)


@app.job("hold a thread")
def hold_a_thread(job: pgq.Job) -> None:
    """Run until there is a file `go`, or the job is asked to stop."""
    desk(f"started-{job.attempt}").touch()
    while not desk("go").exists():
        if job.cancelled.wait(0.01):
            raise InterruptedError("asked to stop")


@app.job("ignore all")
def ignore_all(job: pgq.Job) -> None:
    """Run until there is a file `go`, whatever is asked."""
    desk(f"started-{job.attempt}").touch()
    while not desk("go").exists():
        time.sleep(0.01)


@app.job("block the loop")
async def block_the_loop(seconds: float) -> None:
    """Let nothing else happen in the worker's event loop."""
    time.sleep(seconds)  # noqa: ASYNC251 - the fault on purpose


@app.job("block at the end")
async def block_at_the_end(job: pgq.Job) -> None:
    """Run until asked to stop; then let nothing else happen in the event loop."""
    desk(f"started-{job.attempt}").touch()
    try:
        await asyncio.Event().wait()
    finally:
        time.sleep(60)  # noqa: ASYNC251 - the fault on purpose


@app.job("clean up")
async def clean_up(job: pgq.Job) -> None:
    """Run until asked to stop; then clean up for a moment once there is a file `go`."""
    desk(f"started-{job.attempt}").touch()
    try:
        await asyncio.Event().wait()
    finally:
        desk("asked").touch()
        while not desk("go").exists():  # noqa: ASYNC110 - it waits for another process
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)


@app.job("take all")
async def take_all(**payload: object) -> None:
    """Whatever comes."""


@app.job("fork and hold")
async def fork_and_hold(job: pgq.Job) -> None:
    """Leave a child that lives on; then run until there is a file `go`."""
    child = os.fork()
    if child == 0:
        time.sleep(60)  # noqa: ASYNC251 - the child only is there
        os._exit(0)
    desk("child").write_text(str(child))
    desk("child").rename(desk(f"child-{job.attempt}"))
    while not desk("go").exists():  # noqa: ASYNC110 - it waits for another process
        await asyncio.sleep(0.01)


@app.job("hold the interpreter")
def hold_the_interpreter(seconds: int) -> None:
    """Let no other thread of the worker run, as some code in C does."""
    ctypes.PyDLL(None).sleep(seconds)


@app.job("quick thread")
def quick_thread(job: pgq.Job) -> None:
    """Tell that it ran."""
    desk(f"ran-{job.id}").touch()


@app.job("never ends")
def never_ends(job: pgq.Job) -> None:
    """Run on and on; tell that it was asked to stop."""
    while True:
        time.sleep(0.1)
        if job.cancelled.is_set():
            desk(f"asked-{job.id}").touch()


@app.job("speak")
async def speak(words: str, level: int = 20) -> None:
    """Log this."""
    logging.getLogger("shop").log(level, words)


@app.job("fail to speak")
async def fail_to_speak(words: str) -> None:
    """Log an exception that says this."""
    try:
        raise OSError(words)
    except OSError:
        logging.getLogger("shop").exception("cannot say it")


@app.job("swallow")
async def swallow(job: pgq.Job) -> None:
    """Run on, whatever is asked, until there is a file `go`."""
    desk(f"started-{job.attempt}").touch()
    while not desk("go").exists():
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue


@app.job("leave a thread")
async def leave_a_thread(job: pgq.Job) -> None:
    """Wait for a thread that does not end before there is a file `go`."""
    await asyncio.to_thread(ignore_all, job)


@app.job("leave a task")
async def leave_a_task(job: pgq.Job) -> None:
    """End, and leave a task that swallows its cancellation."""
    _left.add(asyncio.get_running_loop().create_task(swallow(job)))


_left: set[asyncio.Task[None]] = set()


@app.job("make the path odd")
async def make_the_path_odd() -> None:
    """Add to sys.path what is no text, as some scripts do."""
    places: list[object] = sys.path  # type: ignore[assignment]
    places.append(Path("/nowhere"))


@app.job("tell of progress")
async def tell_of_progress(job: pgq.Job) -> None:
    """Say a little more again and again, until there is a file `go`."""
    said = 0
    while not desk("go").exists():
        said += 1
        job.progress(min(said, 1_000) / 1_000)
        await asyncio.sleep(0.05)


@app.job("exit in a sub-task")
async def exit_in_a_sub_task() -> None:
    """Have a task that ends the process, as it believes."""

    async def leave() -> None:
        sys.exit(0)

    await asyncio.gather(leave(), asyncio.sleep(10))


@app.job("log much")
async def log_much(lines: int) -> None:
    """Write more to the log than a pipe holds."""
    for number in range(lines):
        logging.getLogger("shop").warning("line %s %s", number, "x" * 100)


@app.job("ask often")
def ask_often(job: pgq.Job) -> None:
    """Send the database one statement again and again."""
    with job.connect() as conn:
        for _ in range(100):
            conn.execute("select %s::bigint", [job.id])


@app.job("sleep in the database")
def sleep_in_the_database(job: pgq.Job) -> None:
    """Run a statement that takes long on a connection of the job's own."""
    with job.connect() as conn:
        desk(f"started-{job.attempt}").touch()
        conn.execute("select pg_sleep(60)")
