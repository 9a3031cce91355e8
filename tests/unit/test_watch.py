"""When silence is proof: an operator's reap looks again and again before it judges."""

from datetime import UTC, datetime, timedelta

from pgq.admin.reap import Watch
from pgq.calls.workers import Look

START = datetime(2030, 1, 1, tzinfo=UTC)


def look(at: float, *silences: float) -> Look:
    """A look so many seconds after the session began, at workers that seem dead."""
    now = START + timedelta(seconds=at)
    beats = [now - timedelta(seconds=silence) for silence in silences]
    return Look(at=now, session_age=timedelta(seconds=at), suspects=beats)


def test_without_a_suspect_there_is_nothing_to_wait_for() -> None:
    assert Watch().sees(look(0))


def test_a_suspect_is_watched_until_the_session_is_five_seconds_old() -> None:
    watch = Watch()
    seen = [watch.sees(look(second, 60 + second)) for second in range(7)]
    assert seen == [False] * 5 + [True, True]


def test_an_old_session_watches_for_four_seconds() -> None:
    watch = Watch()
    seen = [watch.sees(look(100 + second, 60)) for second in range(5)]
    assert seen == [False] * 4 + [True]


def test_after_a_pause_of_the_server_or_of_this_process_watching_begins_anew() -> None:
    watch = Watch()
    assert not any(watch.sees(look(second, 10 + second)) for second in range(5))
    asleep = 3600
    seen = [watch.sees(look(asleep + second, asleep + second)) for second in range(6)]
    assert seen == [False] * 4 + [True, True]


def test_who_falls_silent_meanwhile_does_not_put_the_judgement_off() -> None:
    watch = Watch()
    seen = [watch.sees(look(100 + second, 60 + second, second % 2)) for second in range(5)]
    assert seen == [False] * 4 + [True]
