"""Runs handlers in child processes (`isolation="process"`), which can be ended whatever they do."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from pgq.model import ClaimedJob, Failed, Verdict
from pgq.registry import Handler
from pgq.registry.app import Isolation, is_async
from pgq.registry.binding import Misfit
from pgq.registry.reference import refer
from pgq.runner import Backing
from pgq.runner.forward import log_level, replay
from pgq.runner.group import ending
from pgq.runner.grouped import Attempt
from pgq.runner.interrupt import Stop, clock, interrupted
from pgq.runner.ladder import LADDERS, Rung
from pgq.runner.pool import Pool
from pgq.runner.spawned import Child
from pgq.runner.thread import Perform
from pgq.runner.verdict import MAX_ERROR, raised, with_policy
from pgq.runner.wire import Answer, Loaded, Logged, Progress, Up, Work
from pgq.text import Unreadable, storable

LOOK = 0.1
"""Seconds between two looks at whether a job is to stop."""

START_WITHIN = 120.0
"""Seconds that a child has to start and to import a handler."""


def process_perform(handlers: Mapping[str, Handler], pool: Pool, backing: Backing) -> Perform:
    """Perform jobs by handlers in children of this pool."""

    def perform(job: ClaimedJob, stop: Stop, /) -> Verdict | None:
        handler = handlers[job.kind]
        try:
            work = _work(handler, job, backing)
        except Misfit as misfit:
            return raised(handler, job, misfit)
        try:
            verdict: Verdict | None = None
            while verdict is None:
                verdict = _Attempt(pool.take(), work, stop, backing, handler).run(pool)
        except OSError as error:
            shown = storable(str(error), MAX_ERROR)
            verdict = Failed(f"no process could be started for it: {shown}")
        match verdict:
            # The policy is not in the child: it may be anything that no other process can import.
            case Failed():
                return with_policy(handler, job, verdict)
            case _:
                return verdict

    return perform


def _work(handler: Handler, job: ClaimedJob, backing: Backing) -> Work:
    if isinstance(job.payload, Unreadable):
        raise Misfit(f"it cannot be read: {job.payload.reason}")
    try:
        payload = json.dumps(job.payload)
    except RecursionError:
        raise Misfit("it cannot be read: it is nested too deeply") from None
    return Work(
        reference=refer(handler.function),
        job=job._replace(payload={}),
        payload=payload,
        dsn=backing.dsn,
        log_level=log_level(),
    )


class _Attempt(Attempt):
    """One job in one child."""

    def __init__(
        self, child: Child, work: Work, stop: Stop, backing: Backing, handler: Handler
    ) -> None:
        super().__init__(work.job, stop, child.group, backing, ladder=LADDERS[Isolation.PROCESS])
        self._child = child
        self._work = work
        self._mildest = Rung.TASK if is_async(handler.function) else Rung.FLAG
        self._given_at = clock()
        self._loaded = False
        self._answer: Answer | None = None
        self._fault: str | None = None
        """What the child did that none of ours does."""

    def run(self, pool: Pool) -> Verdict | None:
        """Attend the job to its end; None if the child had ended before it could begin."""
        try:
            return self._run(pool)
        except BaseException:
            pool.discard(self._child)
            raise

    def _run(self, pool: Pool) -> Verdict | None:
        child, stop = self._child, self._stop
        child.give(self._work)
        if child.has_loaded(self._work):
            self._begin()
        while self._answer is None and not self._over():
            self._press()
            self._listen(LOOK)
        if self._answer is not None and stop.rung not in (Rung.TERM, Rung.KILL):
            pool.give_back(child, memory=self._answer.memory)
            return self._verdict(self._answer)
        survivors = self._end(forced=True)
        child.drain(self._tail)
        pool.discard(child)
        if child.unread and child.jobs and stop.cause is None:
            return None
        return self._tell(self._ended(), survivors)

    def _over(self) -> bool:
        """Whether there is nothing more to hear, or no sense in waiting for it."""
        child = self._child
        if self._fault:
            return True
        if child.silent:
            self._await_death()
            return True
        if not child.alive:  # its children may hold the line open
            for _ in range(8):
                self._listen(0)
            return self._answer is None
        if not self._loaded and clock() - self._given_at > START_WITHIN:
            self._fault = f"did not start within {START_WITHIN:g}s"
            return True
        return self._in_vain

    def _await_death(self) -> None:
        """Its line is closed; its end follows at once if it is why."""
        if not self._child.group.wait(1.0):
            self._fault = "closed its line to the worker"

    def _listen(self, seconds: float) -> None:
        try:
            for message in self._child.attend(self._tail, seconds=seconds):
                self._hear(message)
        except ValueError:
            self._fault = "said what cannot be read"

    def _hear(self, message: Up) -> None:
        if message.lease != self._job.lease:  # a thread that an earlier job left
            return
        match message:
            case Loaded():
                self._child.note_loaded(self._work)
                self._begin()
            case Progress(text=text):
                self._backing.note_progress(self._job, text)
            case Logged():
                replay(message)
            case Answer():
                self._answer = message
            case _ as never:
                assert_never(never)

    def _begin(self) -> None:
        super()._begin()
        self._loaded = True

    def _set_flag(self) -> None:
        self._child.ask(self._job.lease)
        self._stop.rung = self._mildest

    def _ended(self) -> Verdict:
        """What the job ends as whose child has ended."""
        if self._answer is not None:
            return self._verdict(self._answer)
        if self._stop.rung is not None:
            return interrupted(self._job, self._stop)
        how = self._fault or ending(self._group.code)
        return Failed(f"the process that ran it {how}")

    def _verdict(self, answer: Answer) -> Verdict:
        """What the job ends as whose handler has ended."""
        if not answer.gave_up:
            return answer.verdict
        verdict = interrupted(self._job, self._stop)
        match verdict, answer.verdict:
            case Failed(), Failed(traceback=traceback):
                return replace(verdict, traceback=traceback)
            case _:
                return verdict
