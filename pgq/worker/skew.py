"""How far the clock of this host is from the server's, which people should know.

Nothing here corrects anything: every time of a job is the server's, and the clock of a host decides
about none. But its logs carry its own times, and its handlers may compute a time for a job.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from pgq.calls import Call
from pgq.calls.workers import server_clock
from pgq.text import format_duration
from pgq.worker import log

TOLERATED = timedelta(seconds=5)


def skew(*, asked: datetime, answer: datetime, heard: datetime) -> timedelta | None:
    """How far the host is ahead of the server (negative: behind), if by more than is tolerated.

    The server read its clock for `answer` at some moment between `asked` and `heard`.
    """
    half = (heard - asked) / 2
    ahead = asked + half - answer
    return ahead if abs(ahead) - abs(half) > TOLERATED else None


def warn_of_skew(ask: Callable[[Call[datetime]], datetime]) -> None:
    """Say in the log, with the figure, when this host's clock is far from the server's."""
    asked = datetime.now(UTC)
    answer = ask(server_clock())
    ahead = skew(asked=asked, answer=answer, heard=datetime.now(UTC))
    if ahead is not None:
        side = "ahead of" if ahead > timedelta(0) else "behind"
        log.warning(
            f"the clock of this host is {format_duration(abs(ahead))} {side} the server's: "
            "all times of jobs are the server's"
        )
