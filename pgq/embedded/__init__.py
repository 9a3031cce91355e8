"""A private PostgreSQL server for a machine that has none at hand.

Started on demand, reachable over a socket by the user who started it and by nobody else, and
left running. It runs as that user, or as an account of its own when that user is root. Where it
keeps its files and what it does to stay private is written in docs/embedded.md; nothing here
knows the queue or its schema.
"""

from pgq.embedded.server import Status, available, ensure, start, status, stop, url

__all__ = ["Status", "available", "ensure", "start", "status", "stop", "url"]
