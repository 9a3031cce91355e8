"""Registration: which function handles which kind, decided and checked at once."""

import functools
from datetime import timedelta
from typing import Any

import pytest

import pgq
from pgq.calls.workers import KindDefaults
from pgq.errors import UsageError
from pgq.registry.app import Isolation
from pgq.registry.reference import check_reference

MINUTE = timedelta(minutes=1)


class Callable:
    """An object that can be called."""

    async def __call__(self, to: str) -> None: ...

    def method(self, to: str) -> None: ...


async def on_the_loop(to: str) -> None: ...


def in_a_thread(to: str) -> None: ...


def wrapping(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def test_a_function_stays_as_it_is() -> None:
    assert pgq.App().job("mail")(in_a_thread) is in_a_thread


@pytest.mark.parametrize(
    ("function", "isolation"),
    [
        (on_the_loop, Isolation.ASYNC),
        (in_a_thread, Isolation.THREAD),
        (lambda to: to, Isolation.THREAD),
        (Callable().method, Isolation.THREAD),
        (wrapping(in_a_thread), Isolation.THREAD),
    ],
)
def test_async_functions_run_on_the_loop_and_others_in_threads(
    function: Any, isolation: Isolation
) -> None:
    app = pgq.App()
    app.job("mail")(function)

    assert app.handlers["mail"].isolation is isolation
    assert app.handlers["mail"].binding.required == {"to"}


def test_what_jobs_may_leave_out_is_declared() -> None:
    app = pgq.App()
    app.job("mail", queue="letters", max_attempts=5, timeout=MINUTE)(in_a_thread)

    assert app.handlers["mail"].defaults == KindDefaults("mail", "letters", 5, MINUTE)
    assert repr(app) == "<App mail>"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": ""}, "kind: give 1 to 200 characters"),
        ({"kind": "a\0"}, "kind"),
        ({"queue": ""}, "queue: give 1 to 200 characters"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"timeout": timedelta(0)}, "timeout"),
        ({"retry": []}, "retry"),
        ({"retry": -MINUTE}, "retry"),
        ({"retry": [MINUTE, "later"]}, "retry"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        pgq.App().job(**{"kind": "mail", **options})


def test_a_kind_has_one_handler() -> None:
    app = pgq.App()
    app.job("mail")(in_a_thread)

    with pytest.raises(UsageError, match="kind mail has two handlers"):
        app.job("mail")(on_the_loop)


def test_a_generator_is_no_handler() -> None:
    def generator() -> Any:
        yield 1

    async def async_generator() -> Any:
        yield 1

    for function in (generator, async_generator):
        with pytest.raises(UsageError, match="generator"):
            pgq.App().job("mail")(function)


def test_either_kind_of_function_can_run_in_a_process() -> None:
    app = pgq.App()
    app.job("mail", isolation="process")(on_the_loop)
    app.job("resize", isolation="process")(in_a_thread)

    assert {handler.isolation for handler in app.handlers.values()} == {Isolation.PROCESS}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda to: to, "handler .*<lambda>: a process cannot import it: define it at the top"),
        (wrapping(lambda to: to), "cannot import it"),
        (functools.partial(in_a_thread, to="me"), "a process imports only functions"),
    ],
)
def test_what_no_process_can_import_is_refused(function: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        pgq.App().job("mail", isolation="process")(function)


def test_another_isolation_is_refused() -> None:
    wrong: Any = "thread"
    with pytest.raises(UsageError, match="isolation: give 'process' or leave it out, not 'thread'"):
        pgq.App().job("mail", isolation=wrong)


def test_a_handler_that_a_process_would_not_find_is_refused_when_a_worker_starts() -> None:
    renamed: Any = wrapping(in_a_thread)  # it has the name of another one
    with pytest.raises(UsageError, match="a process would find something else by this name"):
        check_reference(renamed)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec("def handler(): ...", namespace)
    with pytest.raises(UsageError, match="handler handler: a process cannot import it from __main"):
        check_reference(namespace["handler"])
    check_reference(in_a_thread)
    check_reference(Callable.method)
