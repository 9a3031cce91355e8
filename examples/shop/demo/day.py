"""The story: orders come in, things go wrong, and in the end everything is done."""

import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psycopg

import pgq
from examples.shop import orders
from examples.shop.demo import trouble
from examples.shop.demo.ledger import Ledger, Progress
from examples.shop.demo.mailserver import MailServer
from examples.shop.demo.workers import PGQ, Worker, environment

T = TypeVar("T")

SHOP = Path(orders.__file__).parent
LONGEST = 75.0
"""Seconds that the day may take."""

SOME = 40
"""Jobs that are done before a worker is killed."""

NOTHING = Progress(*[0] * len(Progress._fields))


class Mishap(Exception):
    """The demonstration cannot go on."""


class Day:
    """One day of the shop, in a database and a folder of its own."""

    def __init__(self, conn: psycopg.Connection[Any], dsn: str, folder: Path) -> None:
        self.conn = conn
        self.dsn = dsn
        self.folder = folder
        self.photos = folder / "photos"
        self.outbox = folder / "outbox"
        self.ledger = Ledger(conn)
        self.orders = orders.load(SHOP / "orders.jsonl")
        self.mail = MailServer(closed={trouble.CLOSED}, greylisted={trouble.GREYLISTED})
        self.workers: list[Worker] = []
        self.enqueued: Counter[str] = Counter()
        self.started_at = self._told_at = time.monotonic()
        self._told: Progress | None = None

    def open_shop(self) -> None:
        """Lay out the tables, and the photos that are there in the morning."""
        installed = subprocess.run(
            [PGQ, "install"],
            env=environment(PGQ_DSN=self.dsn),
            capture_output=True,
            text=True,
            check=False,
        )
        if installed.returncode:
            raise Mishap(f"pgq install failed: {installed.stderr.strip()}")
        self.conn.execute((SHOP / "schema.sql").read_bytes())
        shutil.copytree(SHOP / "products", self.photos)
        (self.photos / trouble.LATE_PHOTO).rename(self.folder / trouble.LATE_PHOTO)
        self.say("pgq install: the queue's tables stand beside the shop's")

    @contextmanager
    def staff(self, count: int) -> Iterator[None]:
        """Worker processes that have reported for work; none outlives the day."""
        variables = environment(
            PGQ_DSN=self.dsn,
            SHOP_DSN=self.dsn,
            SHOP_SMTP=self.mail.address,
            SHOP_OUTBOX=str(self.outbox),
            SHOP_PHOTOS=str(self.photos),
        )
        try:
            for number in range(1, count + 1):
                self.workers.append(Worker(self.folder / f"worker-{number}.log", variables))
            self.until(self._all_at_work, "the workers to start")
            names = [f"{worker} (process {worker.pid})" for worker in self.workers]
            self.say(f"pgq worker --app examples.shop:app, twice: {' and '.join(names)}")
            yield
        finally:
            for worker in self.workers:
                worker.kill()

    def _all_at_work(self) -> bool:
        ids = self.ledger.worker_ids([worker.pid for worker in self.workers])
        for worker in self.workers:
            worker.id = ids.get(worker.pid)
        self.workers.sort(key=lambda worker: worker.id or 0)
        return len(ids) == len(self.workers)

    def take_orders(self) -> None:
        """Place all orders in one transaction, after one that is rolled back."""
        with self.conn.transaction(force_rollback=True):
            orders.place(self.conn, self.orders[:1])
        names = sorted(path.name for path in (SHOP / "products").iterdir())
        more = [*orders.photo_jobs(names), trouble.OUTDATED]
        with self.conn.transaction():
            placed = orders.place(self.conn, self.orders)
            placed += pgq.enqueue_many(self.conn, more)
        ordered = [job for order in self.orders for job in orders.jobs(order)]
        self.enqueued = Counter(job.kind for job in [*ordered, *more])
        self.say(
            f"one transaction: {len(self.orders)} orders and their {len(placed)} jobs; "
            "another one was rolled back, and its jobs with it"
        )

    def lose(self, worker: Worker) -> list[int]:
        """Kill a worker in the middle of its jobs; gives the jobs.

        It is frozen first, so that what the database says of it stays true until it is dead.
        """
        assert worker.id is not None
        worker_id = worker.id
        self.until(lambda: self.ledger.progress().done >= SOME, f"{SOME} jobs to be done")

        def caught() -> list[int]:
            worker.freeze()
            held = self.ledger.held_by(worker_id)
            if not held:
                worker.thaw()
            return held

        held = self.until(caught, f"{worker} to run jobs")
        worker.kill()
        self.say(f"kill -9 of {worker}; the jobs it was running: {_some(held)}")
        return held

    def repair_mail(self) -> None:
        """Start the mail server, once it was missed."""
        failed = self.until(
            lambda: self.ledger.count("pgq.attempts where error ~ 'Connection refused'"),
            "an e-mail to fail",
        )
        self.mail.start()
        self.say(f"the mail server was down, {failed} attempts failed: it is up now")

    def upload_photo(self) -> None:
        """Bring the photo that its jobs wait for, once they do."""
        self.until(lambda: self.ledger.count("pgq.jobs where snoozes > 0"), "a job to snooze")
        (self.folder / trouble.LATE_PHOTO).rename(self.photos / trouble.LATE_PHOTO)
        self.say(f"{trouble.LATE_PHOTO} was missing, so its jobs snooze: it is there now")

    def finish(self) -> None:
        """Wait until every job has ended."""
        self.until(lambda: self.ledger.progress().unfinished == 0, "all jobs to end")
        self.say(f"every job has ended: {self.ledger.progress()}")

    def close_shop(self) -> None:
        """Stop what still runs, as an operator would."""
        for worker in self.workers:
            if worker.exit_code is None:
                self.say(f"kill -TERM of {worker}: exit code {worker.stop(seconds=10)}")
        self.mail.stop()

    def until(self, read: Callable[[], T], what: str) -> T:
        """What `read` gives, as soon as that is something."""
        while not (answer := read()):
            self._tell_progress()
            for worker in self.workers:
                if (worker.exit_code or 0) > 0:
                    raise Mishap(f"{worker} ended by itself: {worker.last_words()}")
            if time.monotonic() - self.started_at > LONGEST:
                words = "\n".join(worker.last_words() for worker in self.workers)
                raise Mishap(f"waited in vain for {what}: {self.ledger.progress()}\n{words}")
            time.sleep(0.02)
        return answer

    def _tell_progress(self) -> None:
        if time.monotonic() - self._told_at < 1:
            return
        progress = self.ledger.progress()
        if progress not in (self._told, NOTHING):
            self.say(f"  {progress}")
            self._told = progress

    def say(self, text: str) -> None:
        """Print a line of the story, with the time."""
        self._told_at = time.monotonic()
        print(f"{self._told_at - self.started_at:5.1f} s  {text}", flush=True)


def _some(items: Sequence[int]) -> str:
    shown = ", ".join(map(str, items[:5]))
    return shown if len(items) <= 5 else f"{shown} and {len(items) - 5} more"
