"""A mail server on this machine that keeps what it receives, and that is down at first."""

import socket
from asyncio import AbstractServer
from collections.abc import Awaitable, Collection
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Received:
    """A message, and to whom its envelope said it goes."""

    recipients: list[str]
    message: EmailMessage


class Mailbox:
    """Takes what comes, as aiosmtpd wants it taken."""

    def __init__(self, closed: Collection[str], greylisted: Collection[str]) -> None:
        self.closed = closed
        self.greylisted = set(greylisted)
        self.received: list[Received] = []

    async def handle_RCPT(  # noqa: N802
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _: list[str]
    ) -> str:
        if address in self.closed:
            return "550 5.1.1 no such mailbox"
        if address in self.greylisted:
            self.greylisted.remove(address)
            return "451 4.7.1 greylisted, try again later"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 OK"

    async def handle_DATA(  # noqa: N802
        self, _server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=policy.default)
        self.received.append(Received(envelope.rcpt_tos, message))
        return "250 2.0.0 kept"


class MailServer(Controller):
    """SMTP on a free port, which is its own from the beginning but refuses until `start`.

    Mail to a closed address is refused for good, mail to a greylisted one the first time.
    """

    def __init__(self, *, closed: Collection[str] = (), greylisted: Collection[str] = ()) -> None:
        self._socket = socket.socket()
        self._socket.bind((HOST, 0))
        self._mailbox = Mailbox(closed, greylisted)
        super().__init__(self._mailbox, hostname=HOST, port=self._socket.getsockname()[1])

    @property
    def address(self) -> str:
        return f"{self.hostname}:{self.port}"

    @property
    def received(self) -> list[Received]:
        """The messages so far, oldest first."""
        return self._mailbox.received

    def _create_server(self) -> Awaitable[AbstractServer]:
        return self.loop.create_server(self._factory_invoker, sock=self._socket)
