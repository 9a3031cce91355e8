"""Is what the shop made as it must be? Reads the e-mails, photos, invoices and contacts.

Each check gives what is wrong, or nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pypdf
from PIL import Image, ImageOps

from examples.shop.demo.mailserver import Received
from examples.shop.demo.trouble import BROKEN_PHOTO
from examples.shop.orders import PHOTO_SIZES, Order, confirmation


def mail(orders: Sequence[Order], received: Sequence[Received], *, lost: int) -> Iterator[str]:
    """Each order was confirmed to its customer, once but for jobs that a killed worker lost."""
    first: dict[str, Received] = {}
    for mail in received:
        first.setdefault(str(mail.message["Message-ID"]), mail)
    if len(received) - len(first) > lost:
        yield f"{len(received) - len(first)} e-mails came twice, but only {lost} jobs were lost"
    by_subject = {str(mail.message["Subject"]): mail for mail in first.values()}
    if len(by_subject) != len(first) or len(first) != len(orders):
        yield f"{len(orders)} orders, but {len(first)} e-mails on {len(by_subject)} orders"
    for order in orders:
        payload = confirmation(order)
        got = by_subject.get(payload["subject"])
        if got is None:
            yield f"{order.number}: no e-mail"
        elif got.recipients != [payload["to"]]:
            yield f"{order.number}: the e-mail went to {got.recipients}"
        elif got.message["Bcc"] or got.message["Cc"]:
            yield f"{order.number}: the e-mail has a header that nobody wrote"
        elif got.message.get_content().replace("\r\n", "\n") != payload["body"]:
            yield f"{order.number}: the e-mail says {got.message.get_content()!r}"


def photos(originals: Path, made: Path) -> Iterator[str]:
    """Each photo is there in each size, as a JPEG of the right proportions, and no other file."""
    wanted = {
        f"{path.stem}-{size}.jpg": (path, size)
        for path in originals.iterdir()
        if path.name != BROKEN_PHOTO
        for size in PHOTO_SIZES
    }
    if wrong := _wrong_names(made, set(wanted)):
        yield from wrong
        return
    for name, (path, size) in wanted.items():
        with Image.open(path) as original, Image.open(made / name) as small:
            small.load()
            upright = ImageOps.exif_transpose(original)
            upright.thumbnail((size, size))
            if (small.format, small.mode, small.size) != ("JPEG", "RGB", upright.size):
                yield f"{name} is {small.format} {small.mode} {small.size}, not {upright.size}"


def invoices(orders: Sequence[Order], made: Path) -> Iterator[str]:
    """Each order has its invoice, with number, customer and total; and there is no other file."""
    if wrong := _wrong_names(made, {f"{order.number}.pdf" for order in orders}):
        yield from wrong
        return
    for order in orders:
        pages = pypdf.PdfReader(made / f"{order.number}.pdf").pages
        text = _letters("".join(page.extract_text() for page in pages))
        customer = order.customer
        if not text.startswith(f"Invoice{order.number}"):
            yield f"invoice {order.number}: its number is not on it"
        if not text.endswith(f"Total{order.total:,f}"):
            yield f"invoice {order.number}: its total is not {order.total:,f}"
        if not any(_names(text, name) for name in (customer.name, customer.latin_name or "?")):
            yield f"invoice {order.number}: {customer.name} is not on it"


def totals(orders: Sequence[Order], results: Mapping[str, str]) -> Iterator[str]:
    """Each invoice's job returned its total."""
    for order in orders:
        if results.get(order.number) != f"{order.total:f}":
            yield f"{order.number}: {results.get(order.number)}, not {order.total:f}"


def contacts(orders: Sequence[Order], found: Sequence[tuple[str, str, int]]) -> Iterator[str]:
    """Each customer is a contact, with the number of orders."""
    counts = Counter(order.customer.email for order in orders)
    names = {order.customer.email: order.customer.name for order in orders}
    expected = {(email, names[email], count) for email, count in counts.items()}
    for contact in expected ^ set(found):
        yield f"contact {contact} is {'missing' if contact in expected else 'wrong'}"


def _wrong_names(folder: Path, wanted: set[str]) -> list[str]:
    # A killed worker may leave a part of a file, but never under the name of a whole one.
    found = {path.name for path in folder.glob("*") if path.suffix != ".part"}
    return [
        f"{name} {'is missing' if name in wanted else 'should not be there'}"
        for name in sorted(found ^ wanted)
    ]


def _names(text: str, name: str) -> bool:
    """Whether each word is there; their order is the reader's, where directions are mixed."""
    return all(_letters(word) in text for word in name.split())


def _letters(text: str) -> str:
    """Without spaces and control characters: a PDF has those that its font wanted."""
    return "".join(sign for sign in text if sign.isprintable() and not sign.isspace())
