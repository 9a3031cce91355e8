"""Who acts, for the audit: the login on this machine."""

import getpass
import os
import socket

from pgq.text import safe


def actor() -> str:
    """`user@host` of this process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no such account on this machine, as in many containers
        user = f"uid {os.getuid()}"
    return safe(f"{user}@{socket.gethostname()}")
