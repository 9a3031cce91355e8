"""Where a claimer starts to look next."""

from datetime import UTC, datetime, timedelta

from pgq.calls.jobs import Look, Place
from pgq.model import ClaimedJob
from pgq.worker.places import BEHIND, MEMORY, START, Places

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
OLD = NOW - timedelta(hours=1)
BEHIND_NOW = (NOW - BEHIND, 0)


def job(job_id: int, *, queue: str = "a", priority: int = 0, at: datetime = OLD) -> ClaimedJob:
    return ClaimedJob(job_id, job_id, queue, "kind", {}, priority, at, 1, 3, None)


def look(*jobs: ClaimedJob) -> Look:
    return Look(NOW, list(jobs))


def known(*queues: str) -> Places:
    """The places after a full look that found nothing."""
    places = Places(list(queues))
    places.note(look(), full=True, limit=10)
    return places


def test_the_first_look_is_a_full_one() -> None:
    assert Places(["a"]).next() is None


def test_after_an_empty_look_it_starts_a_second_behind_now() -> None:
    assert known("a", "b").next() == [Place("a", 0, *BEHIND_NOW), Place("b", 0, *BEHIND_NOW)]


def test_a_look_that_found_all_it_wanted_goes_on_where_it_ended() -> None:
    places = known("a", "b")
    places.note(look(job(7), job(8)), full=False, limit=2)

    assert places.next() == [Place("a", 0, OLD, 8), Place("b", 0, *BEHIND_NOW)]


def test_a_look_that_found_less_than_it_wanted_has_seen_all() -> None:
    places = known("a")
    places.note(look(job(7), job(8)), full=False, limit=3)

    assert places.next() == [Place("a", 0, *BEHIND_NOW)]


def test_a_place_is_never_less_than_a_second_behind() -> None:
    places = known("a")
    places.note(look(job(7, at=NOW)), full=False, limit=1)

    assert places.next() == [Place("a", 0, *BEHIND_NOW)]


def test_a_queue_that_a_full_look_did_not_reach_is_looked_at_from_its_start() -> None:
    places = Places(["a", "b"])
    places.note(look(job(7)), full=True, limit=1)

    assert places.next() == [Place("a", 0, OLD, 7), Place("b", 0, START, 0)]


def test_places_that_were_not_reached_stay_where_they_were() -> None:
    places = known("a", "b")
    places.note(look(job(3, queue="b")), full=False, limit=1)
    places.note(look(job(7)), full=False, limit=1)

    assert places.next() == [Place("a", 0, OLD, 7), Place("b", 0, OLD, 3)]


def test_higher_priorities_come_first() -> None:
    places = Places(["a"])
    places.note(look(job(1, priority=5), job(2), job(3, priority=-5)), full=True, limit=10)

    assert [place.priority for place in places.next() or ()] == [5, 0, -5]


def test_a_look_that_ended_in_a_priority_leaves_the_lower_ones() -> None:
    places = Places(["a"])
    places.note(look(job(1, priority=5), job(2)), full=True, limit=10)
    places.note(look(job(4)), full=False, limit=1)
    places.note(look(job(3, priority=5)), full=False, limit=1)

    assert places.next() == [Place("a", 5, OLD, 3), Place("a", 0, OLD, 4)]


def test_only_so_many_priorities_are_remembered() -> None:
    places = Places(["a"])
    found = [job(n, priority=-n) for n in range(MEMORY + 5)]
    places.note(look(*found), full=True, limit=100)

    remembered = places.next()
    assert remembered is not None
    assert len(remembered) == MEMORY
    assert remembered[0].priority == 0


def test_queues_take_turns_at_being_first() -> None:
    places = known("a", "b", "c")
    orders = []
    for _ in range(4):
        orders.append("".join(places.queues()))
        places.rotate()

    assert orders == ["abc", "bca", "cab", "abc"]
