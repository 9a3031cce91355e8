"""Messages to customers: over SMTP, or as .eml files in the outbox where no server is set.

A `def` handler: smtplib blocks, so it runs in a thread.
"""

import os
import smtplib
import unicodedata
from datetime import timedelta
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import localtime

import pgq
from examples.shop.app import app
from examples.shop.files import outbox, whole

SENDER = Address("The Shop", "orders", "shop.example")


@app.job(
    "send_email",
    queue="mail",
    max_attempts=10,
    timeout=timedelta(seconds=30),
    # Short, so that a demonstration does not wait. A real shop waits minutes.
    retry=[timedelta(seconds=1), timedelta(seconds=2), timedelta(seconds=4)],
)
def send_email(
    job: pgq.Job,
    to: str,
    name: str = "",
    subject: str = "Hello from the shop",
    body: str = "Thank you for your visit.",
) -> dict[str, str]:
    """Send one message.

    A worker can die after the server took the message and before pgq heard of it. The job then
    runs again; the Message-ID, which is the same, lets the receiver drop the second copy.
    """
    message = compose(to, name=name, subject=subject, body=body)
    message["Message-ID"] = f"<job-{job.id}@shop.example>"
    if server := os.environ.get("SHOP_SMTP"):
        deliver(message, server)
        return {"sent_to": to, "server": server}
    target = outbox() / f"job-{job.id}.eml"
    with whole(target) as file:
        file.write(message.as_bytes(policy=SMTP.clone(utf8=not to.isascii())))
    return {"sent_to": to, "file": str(target)}


def compose(to: str, *, name: str, subject: str, body: str) -> EmailMessage:
    """The message; what cannot stand in a header, such as a line break, fails the job for good."""
    for text in (to, name, subject):
        # "=?" begins an encoded word, and some releases of Python write out what is hidden in it.
        if "=?" in text or any(unicodedata.category(sign) in ("Cc", "Zl", "Zp") for sign in text):
            raise pgq.Fail(f"{text!r} has a line break, control character or encoded word")
    message = EmailMessage()
    try:
        # An Address is one mailbox: "a@example.org, b@example.org" is refused here.
        message["To"] = Address(name, addr_spec=to)
    except (IndexError, ValueError, MessageError):
        raise pgq.Fail(f"{to!r} is not an e-mail address") from None
    message["From"] = SENDER
    message["Subject"] = subject
    message["Date"] = localtime()
    message.set_content(body)
    return message


def deliver(message: EmailMessage, server: str) -> None:
    """Hand the message to a server; a refusal for good (5xx) fails the job for good.

    Everything else, such as a server that is down, is raised as it is, and the job is retried.
    """
    host, _, port = server.partition(":")
    try:
        with smtplib.SMTP(host, int(port or 25), timeout=10) as smtp:
            smtp.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        ((code, reply),) = error.recipients.values()
        raise refused(code, reply) or error from None
    except smtplib.SMTPResponseException as error:
        raise refused(error.smtp_code, error.smtp_error) or error from None


def refused(code: int, reply: bytes | str) -> pgq.Fail | None:
    """The end of the job, where the server's reply says that trying again is useless."""
    text = reply.decode(errors="replace") if isinstance(reply, bytes) else reply
    return pgq.Fail(f"the mail server refused: {code} {text}") if code >= 500 else None
