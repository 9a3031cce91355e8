"""A random life of a queue, checked at every step against a model of a few lines.

The model knows the transition table and the rules about attempts, and nothing of SQL: nothing is
lost, never two live leases, attempts add up, and a write without the lease changes nothing.
"""

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import pgq
from pgq import db
from pgq.calls import workers as worker_calls
from pgq.errors import WorkerDead
from pgq.model import TRANSITIONS, ClaimedJob, Status, Verb
from tests.property.model import LATER, NOW, UNFINISHED, VERDICTS, Model, Worker
from tests.support import jobs
from tests.support.databases import empty, row_counts
from tests.support.jobs import Connection, Settlement

# The same lives every time: a failure seen once is seen again.
PROFILE = settings(
    max_examples=200,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)

PLACES = st.integers(0, 2)
DUE = st.sampled_from([True, True, False])
KEYS = st.sampled_from([None, None, "a", "b"])


class QueueMachine(RuleBasedStateMachine):
    """Producers, three workers, reapers and operators, one step at a time."""

    conn: Connection
    """Speaks for everybody."""
    locks: Connection
    """Holds the locks of the workers that live."""
    pristine: dict[str, int]

    def __init__(self) -> None:
        super().__init__()
        empty(self.conn, self.pristine)
        self.locks.execute("select pg_advisory_unlock_all()")
        self.staff: dict[int, Worker] = {}
        self.jobs: dict[int, Model] = {}
        self.leases: set[int] = set()
        self.done = 0
        self.crew = [self.hire(holds_lock) for holds_lock in (True, True, False)]
        for _ in range(3):
            self.enqueue(max_attempts=2, due=True, unique_key=None)

    def hire(self, holds_lock: bool) -> Worker:
        """A new worker."""
        lock_key = len(self.staff) + 1
        if holds_lock:
            self.locks.execute("select pg_advisory_lock(%s)", (lock_key,))
        worker = Worker(jobs.register(self.conn, lock_key=lock_key), lock_key, holds_lock)
        self.staff[worker.id] = worker
        return worker

    @rule(max_attempts=st.integers(1, 3), due=DUE, unique_key=KEYS)
    def enqueue(self, max_attempts: int, due: bool, unique_key: str | None) -> None:
        holder = self.holder(unique_key)
        answer = pgq.enqueue(
            self.conn,
            "work",
            max_attempts=max_attempts,
            delay=NOW if due else LATER,
            unique_key=unique_key,
        )
        assert answer.duplicate == (holder is not None)
        if holder is not None:
            assert answer.id == holder
        else:
            assert answer.id not in self.jobs
            self.jobs[answer.id] = Model(max_attempts, due, unique_key)

    def holder(self, unique_key: str | None) -> int | None:
        """The unfinished job that has the key."""
        found = [
            job_id
            for job_id, job in self.jobs.items()
            if unique_key and job.unique_key == unique_key and job.status in UNFINISHED
        ]
        assert len(found) <= 1
        return found[0] if found else None

    @rule(place=PLACES, limit=st.sampled_from([3, 1, 0]))
    def claim(self, place: int, limit: int) -> None:
        worker = self.crew[place]
        if worker.dead:
            with pytest.raises(WorkerDead):
                jobs.claim(self.conn, worker.id, limit)
            worker = self.crew[place] = self.hire(holds_lock=True)
        claimed = jobs.claim(self.conn, worker.id, limit)
        assert len(claimed) <= limit
        for job in claimed:
            model = self.jobs[job.id]
            assert model.status is Status.PENDING
            assert model.due
            assert job.lease not in self.leases
            self.leases.add(job.lease)
            model.apply(Verb.CLAIM)
            model.held_by, model.worker_id = job, worker.id
            assert job.attempts == model.attempts
        worker.claims += claimed
        if len(claimed) < limit:
            waiting = [job for job in self.jobs.values() if job.is_ready()]
            assert all(job.is_suspect(job.attempts + 1) for job in waiting)
        running = [job for job in self.jobs.values() if job.worker_id == worker.id and job.held_by]
        assert sum(job.is_suspect(job.attempts) for job in running) <= 1

    @precondition(lambda self: self.leases)
    @rule(verdict=st.sampled_from([*[None] * 4, *VERDICTS]), data=st.data())
    def report(self, verdict: tuple[Verb, Settlement] | None, data: st.DataObject) -> None:
        """A worker ends jobs that it has or had, dead or alive; some of them twice."""
        claimers = [worker for worker in self.staff.values() if worker.claims]
        worker = data.draw(st.sampled_from(claimers[::-1]))
        newest_first = st.sampled_from(worker.claims[::-1])
        batch = data.draw(st.lists(newest_first, min_size=1, max_size=3))
        held = self.held(batch)
        stale = {claim.id for claim in batch if self.jobs[claim.id].held_by != claim}
        if verdict is None:
            lost = jobs.finish(self.conn, worker.id, *batch)
            verb, due = Verb.FINISH, False
            self.done += len(held)
        else:
            verb, settlement = verdict
            lost = jobs.settle(self.conn, worker.id, settlement, *batch)
            due = getattr(settlement, "delay", NOW) == NOW
        for job_id in held:
            self.jobs[job_id].apply(verb, due=due)
        assert set(lost).isdisjoint(held - stale)

    def held(self, batch: list[ClaimedJob]) -> set[int]:
        """The jobs of these claims whose lease is still good."""
        return {claim.id for claim in batch if self.jobs[claim.id].held_by == claim}

    @rule(place=PLACES, event=st.sampled_from(["crash", "silence", "beat", "reap", "time passes"]))
    def happen(self, place: int, event: str) -> None:
        worker = self.crew[place]
        match event:
            case "crash" | "silence":
                self.fall_silent(worker, keeps_lock=event == "silence")
            case "beat":
                self.beat(worker)
            case "time passes":
                self.let_time_pass()
            case _:
                self.reap()

    def fall_silent(self, worker: Worker, *, keeps_lock: bool) -> None:
        """Let a worker miss its beats; of one that crashed the lock goes too."""
        jobs.fall_silent(self.conn, worker.id)
        worker.silent = True
        if worker.holds_lock and not keeps_lock:
            self.locks.execute("select pg_advisory_unlock(%s)", (worker.lock_key,))
            worker.holds_lock = False

    def beat(self, worker: Worker) -> None:
        call = worker_calls.heartbeat(worker.id, lock_key=worker.lock_key, draining=False)
        heard = db.run(self.conn, call)
        assert heard.alive == (not worker.dead)
        if heard.alive:
            worker.silent = False
            asked = {
                job_id: job.to_be_killed
                for job_id, job in self.jobs.items()
                if job.worker_id == worker.id and job.held_by and job.asked_to_cancel
            }
            assert (
                dict.fromkeys(heard.cancelled, False) | dict.fromkeys(heard.killed, True) == asked
            )

    def let_time_pass(self) -> None:
        """Make everything due that waits."""
        self.conn.execute("update pgq.jobs set scheduled_at = now() where status = 'pending'")
        for job in self.jobs.values():
            job.due = True

    def reap(self) -> None:
        reaped = jobs.reap(self.conn)
        for worker in self.staff.values():
            worker.dead |= worker.silent and not worker.holds_lock
        expected = {}
        for job_id, job in self.jobs.items():
            if job.held_by and self.is_orphaned(job):
                job.apply(Verb.REAP, due=job.losses == 0)
                expected[job_id] = job.status
        assert reaped == expected

    def is_orphaned(self, job: Model) -> bool:
        return job.worker_id is not None and self.staff[job.worker_id].dead

    @rule(
        action=st.sampled_from(["requeue", "force requeue", "cancel", "kill", "force kill"]),
        data=st.data(),
    )
    def ask(self, action: str, data: st.DataObject) -> None:
        """An operator picks a job, which may be in any status."""
        job_id = data.draw(st.sampled_from(sorted(self.jobs)))
        force = action.startswith("force")
        if action.endswith("requeue"):
            self.requeue(job_id, force=force)
        elif action == "cancel":
            self.end(job_id, jobs.cancel(self.conn, job_id), Verb.CANCEL)
        else:
            answer = jobs.kill(self.conn, job_id, force=force)
            self.end(job_id, answer, Verb.FORCE_KILL if force else Verb.KILL)

    def end(self, job_id: int, answer: list[str], verb: Verb) -> None:
        """A wish that a job ends; of a worker that is gone nobody would hear it."""
        job = self.jobs[job_id]
        if job.status is Status.RUNNING and self.is_orphaned(job):
            verb = Verb.FORCE_KILL
        after = TRANSITIONS.get((job.status, verb))
        answers = {Status.CANCELLED: "cancelled", Status.RUNNING: "requested"}
        assert answer == [answers[after] if after else f"already {job.status}"]
        if after:
            job.apply(verb)

    def requeue(self, job_id: int, *, force: bool) -> None:
        job = self.jobs[job_id]
        (outcome,) = jobs.requeue(self.conn, job_id, force=force)
        match job.status:
            case Status.PENDING:
                assert outcome == "already pending"
            case Status.RUNNING if not force and not self.is_orphaned(job):
                assert outcome == "running"
            case _ if job.status is not Status.RUNNING and self.holder(job.unique_key):
                assert outcome == "unique key taken"
            case _:
                assert outcome == "requeued"
                job.apply(Verb.FORCE_REQUEUE)

    @invariant()
    def the_rows_are_what_the_model_says(self) -> None:
        rows = {row["id"]: row for row in jobs.rows(self.conn, "select * from pgq.jobs")}
        assert rows.keys() == self.jobs.keys()
        for job_id, job in self.jobs.items():
            row = rows[job_id]
            actual = {name: row[name] for name in ("attempts", "losses", "snoozes", "status")}
            assert actual == {name: getattr(job, name) for name in actual}
            assert row["lease"] == (job.held_by.lease if job.held_by else None)
            assert (row["cancel_requested_at"] is not None) >= job.asked_to_cancel

    @invariant()
    def attempts_and_counters_add_up(self) -> None:
        recorded = jobs.rows(
            self.conn, "select job_id, count(*) as count from pgq.attempts group by job_id"
        )
        expected = {job_id: job.recorded for job_id, job in self.jobs.items() if job.recorded}
        assert {row["job_id"]: row["count"] for row in recorded} == expected
        assert jobs.counted(self.conn)["done"] == self.done


def test_no_life_of_a_queue_loses_a_job_or_runs_it_by_two_leases(
    elder: Connection, shared: str
) -> None:
    with psycopg.connect(shared, autocommit=True) as conn:
        pristine = row_counts(conn)

        class Machine(QueueMachine):
            pass

        Machine.conn, Machine.locks, Machine.pristine = elder, conn, pristine
        run_state_machine_as_test(Machine, settings=PROFILE)
