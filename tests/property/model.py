"""What a queue should be after each step: the transition table, the rules of attempts, no SQL."""

from dataclasses import dataclass, field
from datetime import timedelta

from pgq.model import (
    ENDS_CANCELLED,
    TRANSITIONS,
    Buried,
    Cancelled,
    ClaimedJob,
    Failed,
    HandedBack,
    Snoozed,
    Status,
    Verb,
)
from tests.support.jobs import Settlement

NOW, LATER = timedelta(0), timedelta(hours=1)
UNFINISHED = (Status.PENDING, Status.RUNNING)
UNCHARGED = (Verb.SNOOZE, Verb.HAND_BACK)
RECORDED = (
    Verb.FAIL, Verb.FAIL_LAST, Verb.BURY, Verb.STOP, Verb.REAP, Verb.REAP_LAST, Verb.FORCE_KILL,
    Verb.FORCE_REQUEUE,
)  # fmt: skip

SETTLEMENTS: dict[Verb, list[Settlement]] = {
    Verb.FAIL: [Failed("x", delay=NOW), Failed("x", delay=LATER), Failed("x", timed_out=True)],
    Verb.BURY: [Buried("x")],
    Verb.SNOOZE: [Snoozed(NOW), Snoozed(LATER)],
    Verb.HAND_BACK: [HandedBack()],
    Verb.STOP: [Cancelled("x")],
}
VERDICTS = [(verb, verdict) for verb, verdicts in SETTLEMENTS.items() for verdict in verdicts]


@dataclass
class Model:
    """What a job should be."""

    max_attempts: int
    due: bool
    unique_key: str | None
    status: Status = Status.PENDING
    attempts: int = 0
    losses: int = 0
    snoozes: int = 0
    recorded: int = 0
    asked_to_cancel: bool = False
    to_be_killed: bool = False
    held_by: ClaimedJob | None = None
    """The claim whose lease is good."""
    worker_id: int | None = None

    def is_ready(self) -> bool:
        """Whether it waits for nothing but a worker."""
        return self.status is Status.PENDING and self.due

    def is_suspect(self, attempt: int) -> bool:
        """Whether this attempt is the last one of a job that lost a worker before."""
        return self.losses > 0 and attempt >= self.max_attempts

    def apply(self, verb: Verb, *, due: bool = True) -> None:
        """Move as the table says; the verb must be legal."""
        last = self.attempts >= self.max_attempts
        if last and verb in (Verb.FAIL, Verb.REAP):
            verb = Verb.FAIL_LAST if verb is Verb.FAIL else Verb.REAP_LAST
        after = TRANSITIONS[self.status, verb]
        if self.asked_to_cancel and verb in ENDS_CANCELLED:
            after = Status.CANCELLED
        self.attempts += (verb is Verb.CLAIM) - (verb in UNCHARGED)
        self.snoozes += verb is Verb.SNOOZE
        self.losses += verb in (Verb.REAP, Verb.REAP_LAST)
        running = self.status is Status.RUNNING
        self.recorded += running and (verb in RECORDED or after is Status.CANCELLED)
        self.asked_to_cancel |= running and verb in (Verb.CANCEL, Verb.KILL)
        self.to_be_killed |= running and verb is Verb.KILL
        if verb in (Verb.REQUEUE, Verb.FORCE_REQUEUE):
            self.attempts = self.losses = self.snoozes = 0
        if after is not Status.RUNNING:
            self.asked_to_cancel, self.to_be_killed, self.held_by = False, False, None
        self.status, self.due = after, due


@dataclass
class Worker:
    """A worker, and every claim it ever made, whether it still holds or not."""

    id: int
    lock_key: int
    holds_lock: bool
    silent: bool = False
    dead: bool = False
    """Declared dead, that is; a worker that only seems so may come back."""
    claims: list[ClaimedJob] = field(default_factory=list)
