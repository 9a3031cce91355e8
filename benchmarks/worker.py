"""A real worker in a process of its own, with no flags but what names the app."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def worker(dsn: str, kind: str, **environ: str) -> Iterator[None]:
    """`pgq worker --app benchmarks.app:app --kind KIND` while the body runs."""
    env = os.environ | {"PGQ_DSN": dsn} | environ
    pgq = str(Path(sys.executable).with_name("pgq"))
    command = [pgq, "worker", "--app", "benchmarks.app:app", "--kind", kind]
    process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        started = process.stderr.readline()
        if "worker started" not in started:
            raise RuntimeError(f"the worker did not start: {started}{process.stderr.read()}")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def done(conn: psycopg.Connection[Any]) -> int:
    """How many jobs are finished and committed, by the counters that commit with them."""
    row = conn.execute("select coalesce(sum(done), 0)::bigint from pgq.throughput").fetchone()
    assert row is not None
    return int(row[0])


def wait_until_done(conn: psycopg.Connection[Any], jobs: int, *, seconds: float = 300) -> None:
    """Return as soon as so many jobs are finished; TimeoutError when it takes too long."""
    deadline = time.monotonic() + seconds
    while done(conn) < jobs:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{done(conn)} of {jobs} jobs done after {seconds} s")
        time.sleep(0.005)
