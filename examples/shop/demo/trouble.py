"""What goes wrong in the demonstration, on purpose, and how each of it must end."""

from collections.abc import Sequence

import pgq
from examples.shop.orders import PHOTO_SIZES, Order

CLOSED = "closed-account@example.com"
"""A customer whose mailbox is gone: the mail server refuses for good."""

GREYLISTED = "siiri@example.com"
"""A customer whose mail server refuses the first attempt and takes the second."""

HOSTILE = "mallory@example.net"
"""A customer whose name tries to add a header to the e-mail."""

BROKEN_PHOTO = "tote.jpg"
"""A photo whose upload broke off."""

LATE_PHOTO = "teapot.png"
"""A photo that is uploaded after its jobs have started to wait for it."""

OUTDATED = pgq.NewJob("send_email", {"recipient": "reader@example.org", "subject": "News"})
"""A job from a program of last year, when the parameter had another name."""


def dead_letters(orders: Sequence[Order]) -> dict[tuple[str, str], str]:
    """The jobs that must fail for good, by kind and subject, each with a part of its error."""
    hostile = [order.number for order in orders if order.customer.email == HOSTILE]
    return {
        ("send_email", CLOSED): "550",
        ("send_email", HOSTILE): "line break",
        ("send_email", "reader@example.org"): "lacks 'to'",
        **{("make_invoice", number): "the font has no" for number in hostile},
        **{("resize_photo", f"{BROKEN_PHOTO} {size}"): "truncated" for size in PHOTO_SIZES},
    }
