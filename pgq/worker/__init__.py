"""The worker: one process that claims jobs, runs them, and writes what became of them."""

from pgq.worker.main import run
from pgq.worker.options import Options

__all__ = ["Options", "run"]
