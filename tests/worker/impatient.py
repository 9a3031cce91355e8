"""The app of `handlers`, in a worker that waits for answers for a second, so that tests need not
wait for what is longer in real life.
"""

from pgq.worker import lifeline, link
from tests.worker.handlers import app

lifeline.ANSWER = link.ANSWER = 1.0

__all__ = ["app"]
