"""Telling the init system that started this worker how it is: systemd's notification protocol.

One datagram a word, to the socket that NOTIFY_SOCKET names (see sd_notify(3)). Without that
variable, or when nobody listens, nothing happens. There is no word for a watchdog: a job may keep
a worker busy for long, and one that does not answer for good is ended by its own stand-in.
"""

import contextlib
import os
import socket
from collections.abc import Mapping


def ready(environ: Mapping[str, str] = os.environ) -> None:
    """Say that the worker is registered, and takes jobs from now on."""
    _tell("READY=1", environ)


def stopping(environ: Mapping[str, str] = os.environ) -> None:
    """Say that it drains, and will end by itself."""
    _tell("STOPPING=1", environ)


def _tell(word: str, environ: Mapping[str, str]) -> None:
    address = environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):  # one of Linux's abstract sockets
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
        speaker.settimeout(0)
        with contextlib.suppress(OSError):  # nobody listens, or not now: no reason to fail a job
            speaker.sendto(word.encode(), address)
