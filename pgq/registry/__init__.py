"""For applications: handlers, and what they say by returning and raising."""

from pgq.registry.app import App, Handler
from pgq.registry.job import Job
from pgq.registry.outcomes import Cancel, Fail, Retry, snooze

__all__ = ["App", "Cancel", "Fail", "Handler", "Job", "Retry", "snooze"]
