"""The demonstration passes where all is well, and finds what is not."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from examples.shop import orders
from examples.shop.demo import check_goods, check_queue
from examples.shop.demo.ledger import DeadLetter, Ending, Summary
from examples.shop.demo.mailserver import Received
from examples.shop.invoices import Invoice, make_invoice
from examples.shop.mail import compose
from examples.shop.photos import photo_folder, resize_photo
from tests.support.databases import Server

ROOT = Path(__file__).parents[2]
ORDERS = orders.load(ROOT / "examples" / "shop" / "orders.jsonl")[:3]
DEAD = {("send_email", "a@example.org"): "550"}
LETTER = DeadLetter(7, "send_email", "a@example.org", "the mail server refused: 550 no")


def test_the_day_passes_and_leaves_nothing_behind(server: Server, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.shop.demo"],
        cwd=ROOT,
        env={**os.environ, "PGQ_DSN": server.dsn, "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "Everything is as it must be." in done.stdout
    assert "kill -9 of w-1" in done.stdout
    assert "--keep keeps those" in done.stdout
    assert list(tmp_path.iterdir()) == []
    with psycopg.connect(server.dsn) as conn:
        left = conn.execute("select datname from pg_database where datname like 'pgq_demo%'")
        assert left.fetchall() == []


def received(order: orders.Order) -> Received:
    payload = orders.confirmation(order)
    to = payload.pop("to")
    message = compose(to, **payload)
    message["Message-ID"] = f"<{order.number}@shop.example>"
    return Received([to], message)


def test_e_mails_that_are_right_are_found_right() -> None:
    mails = [received(order) for order in ORDERS]

    assert list(check_goods.mail(ORDERS, mails, lost=0)) == []
    assert list(check_goods.mail(ORDERS, [*mails, mails[0]], lost=1)) == []


def test_an_e_mail_that_is_missing_is_found() -> None:
    mails = [received(order) for order in ORDERS[1:]]

    assert f"{ORDERS[0].number}: no e-mail" in list(check_goods.mail(ORDERS, mails, lost=0))


def test_an_e_mail_that_came_twice_without_a_reason_is_found() -> None:
    mails = [received(order) for order in ORDERS]

    (problem,) = check_goods.mail(ORDERS, [*mails, mails[0]], lost=0)

    assert problem == "1 e-mails came twice, but only 0 jobs were lost"


def test_an_e_mail_to_another_customer_is_found() -> None:
    mails = [received(order) for order in ORDERS]
    mails[0].recipients[:] = ["other@example.org"]

    (problem,) = check_goods.mail(ORDERS, mails, lost=0)

    assert "went to ['other@example.org']" in problem


def test_an_e_mail_with_another_text_is_found() -> None:
    mails = [received(order) for order in ORDERS]
    mails[0].message.set_content("nothing")

    (problem,) = check_goods.mail(ORDERS, mails, lost=0)

    assert "says 'nothing\\n'" in problem


def remove(file: Path) -> None:
    file.unlink()


def add(file: Path) -> None:
    shutil.copy(file, file.with_stem("other"))


def replace(file: Path) -> None:
    shutil.copy(max(file.parent.iterdir()), file)


@pytest.fixture
def invoices(outbox: Path) -> Path:
    """The invoices of three orders."""
    for order in ORDERS:
        for job in orders.jobs(order):
            if isinstance(job.payload, Invoice):
                make_invoice(job.payload)
    return outbox / "invoices"


def test_invoices_that_are_right_are_found_right(invoices: Path) -> None:
    (invoices / ".1234.part").touch()

    assert list(check_goods.invoices(ORDERS, invoices)) == []


@pytest.mark.parametrize("spoil", [remove, add, replace])
def test_invoices_that_are_wrong_are_found(invoices: Path, spoil: Callable[[Path], None]) -> None:
    spoil(min(invoices.iterdir()))

    assert list(check_goods.invoices(ORDERS, invoices)) != []


def test_a_result_that_is_wrong_is_found() -> None:
    results = {order.number: f"{order.total}" for order in ORDERS}
    assert list(check_goods.totals(ORDERS, results)) == []

    results[ORDERS[0].number] = "0"
    assert list(check_goods.totals(ORDERS, results)) != []


@pytest.fixture
def photos(outbox: Path) -> Path:
    """All photos in all sizes."""
    for job in orders.photo_jobs([path.name for path in photo_folder().iterdir()]):
        if job.payload["photo"] != "tote.jpg":
            resize_photo(**job.payload)
    return outbox / "photos"


def test_photos_that_are_right_are_found_right(photos: Path) -> None:
    assert list(check_goods.photos(photo_folder(), photos)) == []


@pytest.mark.parametrize("spoil", [remove, add, replace])
def test_photos_that_are_wrong_are_found(photos: Path, spoil: Callable[[Path], None]) -> None:
    spoil(min(photos.iterdir()))

    assert list(check_goods.photos(photo_folder(), photos)) != []


def test_a_contact_that_is_wrong_is_found() -> None:
    contacts = [(order.customer.email, order.customer.name, 1) for order in ORDERS]
    assert list(check_goods.contacts(ORDERS, contacts)) == []

    assert len(list(check_goods.contacts(ORDERS, contacts[1:]))) == 1
    assert len(list(check_goods.contacts(ORDERS, [*contacts, ("x@example.org", "X", 1)]))) == 1


def test_a_count_that_is_wrong_is_found() -> None:
    right = Summary("send_email", jobs=5, done=4, failed=1, retries=0, lost=0, snoozes=0)
    assert list(check_queue.counts({"send_email": 5}, DEAD, [right])) == []

    for wrong in (right._replace(jobs=6), right._replace(done=3), right._replace(failed=2)):
        assert list(check_queue.counts({"send_email": 5}, DEAD, [wrong])) != []
    assert list(check_queue.counts({"send_email": 5}, DEAD, [])) != []
    assert list(check_queue.counts({}, DEAD, [right])) != []


def test_a_dead_letter_that_is_wrong_is_found() -> None:
    assert list(check_queue.dead_letters(DEAD, [LETTER])) == []

    assert list(check_queue.dead_letters(DEAD, [])) != []
    assert list(check_queue.dead_letters({}, [LETTER])) != []
    assert list(check_queue.dead_letters(DEAD, [LETTER._replace(error="other")])) != []


def test_a_takeover_that_is_wrong_is_found() -> None:
    right = Ending(7, "done", losers=[1], last_worker=2)
    assert list(check_queue.takeover([7], [right], lost_by=1, done_by=2)) == []

    for wrong in (right._replace(losers=[]), right._replace(last_worker=1)):
        assert list(check_queue.takeover([7], [wrong], lost_by=1, done_by=2)) != []
    assert list(check_queue.takeover([7], [], lost_by=1, done_by=2)) != []
    assert list(check_queue.takeover([], [], lost_by=1, done_by=2)) != []
