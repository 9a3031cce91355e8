"""Which runners a worker has: one lane for each way that its kinds run."""

from collections.abc import Sequence
from dataclasses import dataclass

from pgq.registry.app import Isolation
from pgq.runner import Backing, Report, Runner
from pgq.runner.command import command_perform
from pgq.runner.coroutine import CoroutineRunner
from pgq.runner.keeper import Keeper
from pgq.runner.thread import ThreadRunner, handler_perform
from pgq.worker.lane import Lane, Take
from pgq.worker.options import Options


@dataclass(frozen=True, slots=True)
class Crew:
    """The lanes of a worker, and the guard of its commands if it runs any."""

    lanes: Sequence[Lane]
    keeper: Keeper | None

    @property
    def busy(self) -> bool:
        """Whether any job runs or waits."""
        return any(lane.busy for lane in self.lanes)

    @property
    def concurrency(self) -> int:
        """How many jobs can run at once."""
        return sum(lane.runner.capacity for lane in self.lanes)

    def close(self) -> None:
        """Let the guard go; nothing runs any more."""
        if self.keeper is not None:
            self.keeper.close()


def make_crew(options: Options, take: Take, backing: Backing) -> Crew:
    """The lanes for these options, inside the running event loop; verdicts go to `take`."""
    if options.app is None:
        keeper = Keeper()
        lane = Lane(options.served_kinds, options.served_queues)
        perform = command_perform(options.command or "", keeper)
        capacity = options.capacity(None)
        noted = lane.reporting(take)
        lane.attach(ThreadRunner(perform, capacity, noted, backing=backing))
        return Crew([lane], keeper)
    kinds: dict[Isolation, list[str]] = {}
    for kind in options.served_kinds or ():
        kinds.setdefault(options.app.handlers[kind].isolation, []).append(kind)
    lanes = []
    for isolation, names in kinds.items():
        handlers = [options.app.handlers[name] for name in names]
        timeouts = {handler.kind: handler.timeout for handler in handlers if handler.timeout}
        lane = Lane(names, options.served_queues, timeouts=timeouts)
        lane.attach(_runner(options, isolation, lane.reporting(take), backing))
        lanes.append(lane)
    return Crew(lanes, None)


def _runner(options: Options, isolation: Isolation, report: Report, backing: Backing) -> Runner:
    assert options.app is not None
    handlers = options.app.handlers
    capacity = options.capacity(isolation)
    match isolation:
        case Isolation.ASYNC:
            return CoroutineRunner(handlers, capacity, report, backing=backing)
        case Isolation.THREAD:
            perform = handler_perform(handlers, backing)
            return ThreadRunner(perform, capacity, report, backing=backing)
        case _:
            raise AssertionError(isolation)
