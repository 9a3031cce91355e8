"""The app of `handlers`, in a worker that looks for jobs when it is told of some or its connection
is back, and not because time has passed.
"""

from pgq.worker import claim
from tests.worker.handlers import app

claim.FIRST_LOOK = 3600.0

__all__ = ["app"]
