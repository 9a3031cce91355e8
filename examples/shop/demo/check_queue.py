"""Did the jobs end as they must? Compares what the database says with what was ordered.

Each check gives what is wrong, or nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from examples.shop.demo.ledger import DeadLetter, Ending, Summary


def counts(
    enqueued: Mapping[str, int], dead: Mapping[tuple[str, str], str], found: Sequence[Summary]
) -> Iterator[str]:
    """Of each kind there are as many jobs as were enqueued; those that must have failed have."""
    failed = Counter(kind for kind, _ in dead)
    for summary in found:
        jobs, done = enqueued.get(summary.kind, 0), summary.jobs - failed[summary.kind]
        if (summary.jobs, summary.done, summary.failed) != (jobs, done, failed[summary.kind]):
            yield f"{summary}, but {jobs} were enqueued and {failed[summary.kind]} had to fail"
    for kind in enqueued.keys() - {summary.kind for summary in found}:
        yield f"there is no job of kind {kind}"


def takeover(
    lost: Sequence[int], endings: Sequence[Ending], *, lost_by: int | None, done_by: int | None
) -> Iterator[str]:
    """Each job that one worker lost was charged for it once and then ended by the other."""
    if not lost or len(endings) != len(lost):
        yield f"{len(lost)} jobs were lost and {len(endings)} of them are known"
    for ending in endings:
        if ending.losers != [lost_by] or ending.last_worker != done_by:
            yield f"{ending}"


def dead_letters(
    expected: dict[tuple[str, str], str], found: Sequence[DeadLetter]
) -> Iterator[str]:
    """Exactly the jobs failed that had to, each with its own error."""
    for letter in found:
        error = expected.get((letter.kind, letter.subject))
        if error is None:
            yield f"job {letter.id} {letter.kind} {letter.subject} failed: {letter.error}"
        elif error not in letter.error:
            yield f"job {letter.id} {letter.kind} failed with {letter.error!r}, not {error!r}"
    for kind, subject in expected.keys() - {(letter.kind, letter.subject) for letter in found}:
        yield f"{kind} {subject} did not fail"
