"""Messages are sent as they are meant, to the one they are meant for."""

from email import message_from_bytes, policy
from pathlib import Path
from smtplib import SMTPRecipientsRefused

import pytest

import pgq
from examples.shop import app
from examples.shop.demo.mailserver import MailServer
from examples.shop.mail import send_email

HOSTILE = [
    "Eve\r\nBcc: everyone@example.org",
    "Eve\nBcc: everyone@example.org",
    "Eve\rBcc: everyone@example.org",
    "Eve\x0cBcc: everyone@example.org",
    "Eve\u2028Bcc: everyone@example.org",
    "=?utf-8?q?Eve=0d=0aBcc:_everyone@example.org?=",
]


def test_a_payload_with_only_a_recipient_is_enough(outbox: Path, job: pgq.Job) -> None:
    arguments = app.handlers["send_email"].binding.arguments({"to": "a@example.org"})

    result = send_email(job, **arguments)

    (file,) = outbox.iterdir()
    assert result == {"sent_to": "a@example.org", "file": str(file)}
    message = message_from_bytes(file.read_bytes(), policy=policy.default)
    assert message["To"] == "a@example.org"


def test_a_message_arrives_as_it_was_written(mailserver: MailServer, job: pgq.Job) -> None:
    body = "Grüße aus 東京\n.\n..\n" + "long " * 500 + "\n"

    send_email(job, "a@example.org", name='山田 "T", Jr.', subject="Objednávka č. 1", body=body)

    (received,) = mailserver.received
    assert received.recipients == ["a@example.org"]
    assert received.message["To"].addresses[0].display_name == '山田 "T", Jr.'
    assert received.message["Subject"] == "Objednávka č. 1"
    assert received.message.get_content().replace("\r\n", "\n") == body


def test_a_domain_with_other_letters_is_reached(mailserver: MailServer, job: pgq.Job) -> None:
    send_email(job, "ivan@книги.example")

    assert [received.recipients for received in mailserver.received] == [["ivan@книги.example"]]


def test_each_attempt_of_a_job_sends_the_same_message_id(
    mailserver: MailServer, job: pgq.Job
) -> None:
    send_email(job, "a@example.org")
    send_email(job, "a@example.org")

    ids = [received.message["Message-ID"] for received in mailserver.received]
    assert ids == ["<job-17@shop.example>"] * 2


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("field", ["to", "name", "subject"])
def test_no_text_can_add_a_header(
    mailserver: MailServer, job: pgq.Job, field: str, text: str
) -> None:
    payload = {"to": "a@example.org"} | {field: text}

    with pytest.raises(pgq.Fail, match="line break"):
        send_email(job, **payload)

    assert mailserver.received == []


@pytest.mark.parametrize(
    "address",
    [
        "",
        "a",
        "a@",
        "@example.org",
        "a@example.org, b@example.org",
        "a@example.org; b@example.org",
        "A <a@example.org>",
        "a@example.org b@example.org",
        "a@example.org>",
        "a,b@example.org",
    ],
)
def test_what_is_not_one_address_fails_for_good(
    mailserver: MailServer, job: pgq.Job, address: str
) -> None:
    with pytest.raises(pgq.Fail, match="not an e-mail address"):
        send_email(job, address)

    assert mailserver.received == []


def test_a_mailbox_that_does_not_exist_fails_for_good(mailserver: MailServer, job: pgq.Job) -> None:
    with pytest.raises(pgq.Fail, match=r"550 .* no such mailbox"):
        send_email(job, "closed@example.org")

    assert mailserver.received == []


def test_a_server_that_is_down_is_tried_again(
    job: pgq.Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = MailServer()
    monkeypatch.setenv("SHOP_SMTP", server.address)

    with pytest.raises(ConnectionRefusedError):
        send_email(job, "a@example.org")

    server.start()
    send_email(job, "a@example.org")
    server.stop()
    assert len(server.received) == 1


def test_a_server_that_asks_for_patience_is_tried_again(
    mailserver: MailServer, job: pgq.Job
) -> None:
    with pytest.raises(SMTPRecipientsRefused, match="try again later"):
        send_email(job, "grey@example.org")

    send_email(job, "grey@example.org")
    assert len(mailserver.received) == 1
