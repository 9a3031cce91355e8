"""What running jobs say of their progress, until the next beat writes it."""

from collections.abc import Callable, Container

from pgq.calls import Call
from pgq.calls.jobs import Progress, note_progress
from pgq.errors import Conflict, PgqError, Unavailable
from pgq.model import ClaimedJob
from pgq.worker import log


class Board:
    """The latest word of each job that said something since the last beat."""

    def __init__(self, held: Container[int]) -> None:
        """`held`: the leases of the jobs that this worker has not ended."""
        self._held = held
        # By lease. It stays the same dict, since handlers write to it from many threads.
        self._said: dict[int, Progress] = {}

    def note(self, job: ClaimedJob, text: str) -> None:
        """Write this soon."""
        self._said[job.lease] = Progress(job, text)

    def write(self, run: Callable[[Call[None]], None]) -> None:
        """Write the news of the jobs that still run; Unavailable if that must come later."""
        said = [self._said.pop(lease) for lease in list(self._said)]
        news = [one for one in said if one.job.lease in self._held]
        if not news:
            return
        try:
            run(note_progress(news))
        except (Conflict, Unavailable) as error:
            for one in news:
                self._said.setdefault(one.job.lease, one)
            if isinstance(error, Unavailable):
                raise
        except PgqError:  # for the sake of one, perhaps: that must keep no other from being written
            for one in news:
                self._write_alone(one, run)

    @staticmethod
    def _write_alone(one: Progress, run: Callable[[Call[None]], None]) -> None:
        try:
            run(note_progress([one]))
        except Unavailable:
            raise
        except PgqError as error:
            log.info("progress not written", job=one.job.id, error=str(error))
