"""Which runners a worker has: one lane for each way that its kinds run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from pgq.model import ClaimedJob
from pgq.registry.app import Isolation
from pgq.runner import Backing, Report, Runner, Wanted
from pgq.runner.command import command_perform
from pgq.runner.coroutine import CoroutineRunner
from pgq.runner.grouped import GroupRunner
from pgq.runner.interrupt import Interrupt
from pgq.runner.keeper import Keeper
from pgq.runner.pool import Pool
from pgq.runner.process import process_perform
from pgq.runner.spawned import Recycling
from pgq.runner.thread import ThreadRunner, handler_perform
from pgq.worker.lane import Lane, Take
from pgq.worker.options import Options


@dataclass(frozen=True, slots=True)
class Crew:
    """The lanes of a worker, and what belongs to its processes and commands if it runs any."""

    lanes: Sequence[Lane]
    keeper: Keeper | None = None
    pool: Pool | None = None

    @property
    def busy(self) -> bool:
        """Whether any job runs or waits."""
        return any(lane.busy for lane in self.lanes)

    @property
    def concurrency(self) -> int:
        """How many jobs can run at once."""
        return sum(lane.runner.capacity for lane in self.lanes)

    def tick(self, now: float) -> None:
        """Look at the timeouts of all jobs, and go on with those that were asked to end."""
        for lane in self.lanes:
            lane.runner.tick(now)

    def ask(self, cause: Interrupt, wanted: Wanted | None = None) -> None:
        """Ask the running jobs that are wanted, or all, to end."""
        for lane in self.lanes:
            lane.runner.ask(cause, wanted)

    def ask_ahead(self, cause: Interrupt, wanted: Wanted) -> None:
        """Ask those of them that hear it without the event loop; from any thread."""
        for lane in self.lanes:
            lane.runner.ask_ahead(cause, wanted)

    def blocking(self) -> ClaimedJob | None:
        """The job whose handler has the event loop, as far as it can be told; from any thread."""
        jobs = (lane.runner.blocking() for lane in self.lanes)
        return next((job for job in jobs if job is not None), None)

    def withdraw(self) -> list[ClaimedJob]:
        """Take back the jobs that have not started."""
        return [job for lane in self.lanes for job in lane.runner.withdraw()]

    def started(self) -> list[ClaimedJob]:
        """The jobs that have started and not ended."""
        return [job for lane in self.lanes for job in lane.runner.started()]

    def stubborn(self) -> list[ClaimedJob]:
        """The jobs that were made to end, in vain; may be called from any thread."""
        return [job for lane in self.lanes for job in lane.runner.stubborn()]

    def close(self) -> None:
        """Let threads, processes and their guard go; no job will come any more."""
        for lane in self.lanes:
            lane.runner.close()
        if self.pool is not None:
            self.pool.close()
        if self.keeper is not None:
            self.keeper.close()


def make_crew(options: Options, take: Take, backing: Backing) -> Crew:
    """The lanes for these options, inside the running event loop; verdicts go to `take`."""
    if options.app is None:
        return _command_crew(options, take, backing)
    kinds: dict[Isolation, list[str]] = {}
    for kind in options.served_kinds or ():
        kinds.setdefault(options.app.handlers[kind].isolation, []).append(kind)
    keeper = Keeper() if Isolation.PROCESS in kinds else None
    recycling = Recycling(options.recycle_jobs, options.recycle_mb)
    pool = Pool(keeper, recycling) if keeper is not None else None
    lanes = []
    for isolation, names in kinds.items():
        handlers = [options.app.handlers[name] for name in names]
        timeouts = {handler.kind: handler.timeout for handler in handlers if handler.timeout}
        lane = Lane(names, options.served_queues, timeouts=timeouts)
        report = lane.reporting(take)
        lane.attach(_runner(options, isolation, report, backing=backing, pool=pool))
        lanes.append(lane)
    return Crew(lanes, keeper, pool)


def _command_crew(options: Options, take: Take, backing: Backing) -> Crew:
    keeper = Keeper()
    lane = Lane(options.served_kinds, options.served_queues)
    perform = command_perform(options.command or "", keeper, backing)
    capacity = options.capacity(None)
    noted = lane.reporting(take)
    lane.attach(GroupRunner(perform, capacity, noted, backing=backing, keeper=keeper))
    return Crew([lane], keeper)


def _runner(
    options: Options, isolation: Isolation, report: Report, *, backing: Backing, pool: Pool | None
) -> Runner:
    assert options.app is not None
    handlers = options.app.handlers
    capacity = options.capacity(isolation)
    match isolation:
        case Isolation.ASYNC:
            return CoroutineRunner(handlers, capacity, report, backing=backing)
        case Isolation.THREAD:
            perform = handler_perform(handlers, backing)
            return ThreadRunner(perform, capacity, report, backing=backing)
        case Isolation.PROCESS:
            assert pool is not None
            perform = process_perform(handlers, pool, backing)
            return GroupRunner(
                perform, capacity, report, backing=backing, keeper=pool.keeper, sweep=pool.sweep
            )
        case Isolation.COMMAND:
            raise AssertionError(isolation)
        case _ as never:
            assert_never(never)
