"""What an exception means to the one who ran the command."""

import pytest
import typer

from pgq.errors import JobCancelled, Refused, SchemaMismatch, Unavailable, UsageError, WaitTimeout
from pgq_cli.failure import explain, redact


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("bad"), 2),
        (Unavailable("gone"), 3),
        (SchemaMismatch(found=None, needed=1), 3),
        (Refused("no"), 5),
        (JobCancelled(7), 6),
        (WaitTimeout(7, "pending"), 7),
        (typer.BadParameter("bad"), 2),
        (KeyboardInterrupt(), 130),
        (typer.Abort(), 130),
        (FileNotFoundError(2, "No such file", "/x"), 1),
        (ZeroDivisionError("1/0"), 1),
    ],
)
def test_every_error_is_one_line_and_a_code(error: BaseException, code: int) -> None:
    failure = explain(error, debug=False)
    assert failure.exit_code == code
    assert failure.text.startswith("pgq: ")
    assert "\n" not in failure.text


def test_an_unexpected_error_says_how_to_get_the_traceback() -> None:
    text = explain(ZeroDivisionError("division by zero"), debug=False).text
    assert "ZeroDivisionError: division by zero" in text
    assert "PGQ_DEBUG=1" in text


def test_debug_shows_the_traceback_without_local_variables_and_passwords() -> None:
    dsn = "postgresql://app:hunter2@db/shop"
    try:
        raise ValueError(f"cannot read {dsn}")
    except ValueError as error:
        text = explain(error, debug=True).text
    assert "test_failure.py" in text
    assert "hunter2" not in text
    assert text.splitlines()[-1].startswith("pgq: unexpected ValueError")


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://app:hunter2@db/shop",
        "postgres://app:hunter2/@p@db:5432/shop?x=1",
        "host=db password=hunter2 dbname=shop",
        "host=db PASSWORD = 'hunter2 and more' dbname=shop",
        "postgresql://db/shop?user=a&password=hunter2&x=1",
    ],
)
def test_passwords_are_cut_out_of_any_text(text: str) -> None:
    shown = redact(text)
    assert "hunter2" not in shown
    assert "***" in shown
    assert ("shop" in shown) or ("x=1" in shown)


def test_an_error_text_cannot_forge_a_second_line() -> None:
    assert explain(UsageError("a\npgq: all is well\x1b[2J"), debug=False).text == (
        "pgq: a\\npgq: all is well\\x1b[2J"
    )
