"""What became of the day: the counts, the dead letters, and whether all is as it must be."""

from collections.abc import Iterable, Iterator, Sequence

from tabulate import tabulate

from examples.shop.demo import check_goods, check_queue, trouble
from examples.shop.demo.day import Day
from examples.shop.demo.ledger import DeadLetter, Summary

SHOWN = 5
"""Lines of a failed check."""


def tables(day: Day) -> str:
    """The jobs by kind, and those that failed for good."""
    counts = tabulate(day.ledger.summaries(), headers=Summary._fields, disable_numparse=True)
    letters = [
        letter._replace(error=_short(letter.error, 60)) for letter in day.ledger.dead_letters()
    ]
    dead = tabulate(letters, headers=DeadLetter._fields, disable_numparse=True)
    return f"{counts}\n\ndead letters:\n{dead}"


def verify(day: Day, lost: Sequence[int]) -> bool:
    """Print each check with what is wrong, if anything; true if nothing is."""
    results = [_report(what, problems) for what, problems in _checks(day, lost)]
    return all(results)


def _report(what: str, problems: Iterable[str]) -> bool:
    wrong = list(problems)
    print(f"{'WRONG' if wrong else 'ok':5}  {what}")
    for problem in wrong[:SHOWN]:
        print(f"         {_short(problem, 200)}")
    if len(wrong) > SHOWN:
        print(f"         and {len(wrong) - SHOWN} more")
    return not wrong


def _checks(day: Day, lost: Sequence[int]) -> Iterator[tuple[str, Iterable[str]]]:
    yield from _queue_checks(day, lost)
    yield from _goods_checks(day, lost)


def _queue_checks(day: Day, lost: Sequence[int]) -> Iterator[tuple[str, Iterable[str]]]:
    ledger, (first, second) = day.ledger, day.workers
    dead = trouble.dead_letters(day.orders)
    yield (
        f"{ledger.count('pgq.jobs')} jobs, all enqueued and none twice; {len(dead)} had to fail",
        check_queue.counts(day.enqueued, dead, ledger.summaries()),
    )
    yield (
        "each dead letter says what was wrong",
        check_queue.dead_letters(dead, ledger.dead_letters()),
    )
    yield (
        f"what {first} was running was run again by {second} (jobs: {len(lost)})",
        check_queue.takeover(lost, ledger.endings(lost), lost_by=first.id, done_by=second.id),
    )
    stopped = [] if second.exit_code == 0 else [f"its exit code is {second.exit_code}"]
    yield f"{second} ended at SIGTERM with exit code 0", stopped


def _goods_checks(day: Day, lost: Sequence[int]) -> Iterator[tuple[str, Iterable[str]]]:
    dead = trouble.dead_letters(day.orders)
    mailed = [order for order in day.orders if ("send_email", order.customer.email) not in dead]
    billed = [order for order in day.orders if ("make_invoice", order.number) not in dead]
    yield (
        f"{len(mailed)} e-mails received over SMTP{_twice(day)}",
        check_goods.mail(mailed, day.mail.received, lost=len(lost)),
    )
    yield (
        f"{len(billed)} PDF invoices read back: number, customer, total",
        check_goods.invoices(billed, day.outbox / "invoices"),
    )
    yield (
        "the invoices' totals are the results of their jobs",
        check_goods.totals(billed, day.ledger.totals()),
    )
    yield (
        "every photo in every size, as JPEG, true to the original",
        check_goods.photos(day.photos, day.outbox / "photos"),
    )
    stored, known = day.ledger.count("shop.orders"), day.ledger.count("shop.contacts")
    yield (
        f"{stored} orders in the shop, {known} contacts in the CRM",
        check_goods.contacts(day.orders, day.ledger.contacts()),
    )


def _twice(day: Day) -> str:
    """What at-least-once delivery means, if it showed."""
    ids = {str(mail.message["Message-ID"]) for mail in day.mail.received}
    again = len(day.mail.received) - len(ids)
    return f", {again} of them twice: sent before the kill, not yet reported" if again else ""


def _short(text: str, width: int) -> str:
    line = text if text.isprintable() else text.encode("unicode_escape").decode()
    return line if len(line) <= width else line[: width - 3] + "..."
