"""What a worker is told, what follows from it, and what is refused."""

from datetime import timedelta
from typing import Any

import pytest

import pgq
from pgq.errors import UsageError
from pgq.registry.app import Isolation
from pgq.worker import Options


@pytest.fixture
def app() -> pgq.App:
    app = pgq.App()

    @app.job("mail", queue="letters")
    async def mail() -> None: ...

    @app.job("resize", queue="pictures")
    def resize() -> None: ...

    @app.job("note")
    def note() -> None: ...

    return app


def test_an_app_is_served_on_the_queues_of_its_handlers_and_default(app: pgq.App) -> None:
    assert Options("", app=app).served_queues == ["letters", "pictures", "default"]


def test_queues_are_served_as_given_each_once(app: pgq.App) -> None:
    options = Options("", app=app, queues=["b", "a", "b"])

    assert options.served_queues == ["b", "a"]


def test_a_command_takes_every_kind_of_default_unless_told() -> None:
    assert Options("", command="true").served_kinds is None
    assert Options("", command="true").served_queues == ["default"]
    assert Options("", command="true", kinds=["a", "b", "a"]).served_kinds == ["a", "b"]


def test_an_app_serves_its_kinds_or_some_of_them(app: pgq.App) -> None:
    assert Options("", app=app).served_kinds == ["mail", "resize", "note"]
    assert Options("", app=app, kinds=["note", "mail"]).served_kinds == ["mail", "note"]


def test_concurrency_is_100_for_the_loop_and_by_the_cores_for_the_rest(app: pgq.App) -> None:
    options = Options("", app=app)

    assert options.capacity(Isolation.ASYNC) == 100
    assert options.capacity(Isolation.THREAD) == options.capacity(None) >= 2
    assert Options("", app=app, concurrency=7).capacity(Isolation.ASYNC) == 7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "give an app"),
        ({"command": "true", "app": pgq.App()}, "give an app"),
        ({"app": pgq.App()}, "no handlers"),
        ({"command": "true", "concurrency": 0}, "concurrency"),
        ({"command": "true", "concurrency": 10_001}, "concurrency"),
        ({"command": "true", "poll": timedelta(0)}, "poll"),
        ({"command": "true", "poll": timedelta(days=1)}, "poll"),
        ({"command": "true", "grace": timedelta(seconds=-1)}, "grace"),
        ({"command": "true", "queues": [""]}, "queue: give 1 to 200 characters, not 0"),
        ({"command": "true", "queues": ["a\0b"]}, "queue .* NUL"),
        ({"command": "true", "kinds": ["x" * 201]}, "kind: give 1 to 200 characters, not 201"),
        ({"command": " "}, "give a command"),
        ({"command": "true", "log_format": "xml"}, "log format: give one of text, json"),
        ({"command": "true", "recycle_jobs": 0}, "recycle"),
        ({"command": "true", "recycle_mb": 0}, "recycle"),
        ({"command": "true", "log_level": "loud"}, "log level"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Options("", **options)


def test_a_kind_without_a_handler_is_refused(app: pgq.App) -> None:
    with pytest.raises(UsageError, match="no handler for kind 'fax'; it has mail, note, resize"):
        Options("", app=app, kinds=["mail", "fax"])


def test_a_name_with_a_comma_is_doubted_unless_a_handler_has_it(app: pgq.App) -> None:
    @app.job("odd", queue="x,y")
    def odd() -> None: ...

    assert Options("", app=app, queues=["letters", "x,y"]).doubts == []
    assert Options("", app=app, queues=["letters,pictures"]).doubts == [
        "--queue 'letters,pictures' is one name with a comma in it: give --queue once for each"
    ]
    assert Options("", command="true", kinds=["a,b"]).doubts == [
        "--kind 'a,b' is one name with a comma in it: give --kind once for each"
    ]
