"""A worker's process.

It is one worker after another: one that was declared dead by others stops its jobs, and the process
goes on as a new worker, under a new id.
"""

import asyncio
import random

from pgq.runner.executor import Executor
from pgq.runner.verdict import describe
from pgq.worker import log
from pgq.worker.ending import Ending
from pgq.worker.leaving import leave
from pgq.worker.link import LONGEST_WAIT
from pgq.worker.options import Options
from pgq.worker.worker import Worker


def run(options: Options) -> int:
    """Work until told to stop; gives the exit code.

    0 after a drain or one signal, 128+n after a second signal n, 1 when a part of the worker could
    not go on. Raises Unavailable or SchemaMismatch when it cannot start.
    """
    log.configure(style=options.log_format, level=options.log_level)
    try:
        with asyncio.Runner() as runner:
            return _run(runner.get_loop(), options)
    finally:
        log.flush(1.0)


def _run(loop: asyncio.AbstractEventLoop, options: Options) -> int:
    """Run the loop until the work is over, whatever a task of a handler raises."""
    work = loop.create_task(_work(options))
    while True:
        try:
            return loop.run_until_complete(work)
        except (SystemExit, KeyboardInterrupt, RuntimeError) as error:
            # asyncio lets the first two out of the loop from any task, such as one in a gather().
            # The task has ended with it, and whoever awaits it hears of it; the work goes on. So
            # it does when a handler has called the loop's stop(), which is the third.
            if work.done() or loop.is_closed():
                raise
            log.warning("a task of a handler tried to end the process", error=describe(error))


async def _work(options: Options) -> int:
    executor = Executor()
    asyncio.get_running_loop().set_default_executor(executor)
    ending = Ending()
    with ending.listening():
        died = await Worker(options, ending).run()
        while died and ending.renew():
            await ending.pause(LONGEST_WAIT * random.uniform(0.5, 1.0))
            died = await Worker(options, ending).run(patient=True)
        await leave(executor, ending.exit_code, abandoned=ending.abandoned)
    return ending.exit_code
