"""`python -m benchmarks [--jobs N] [--rounds N] [--record NAME]`: prints a table of ratios."""

import argparse
import os
import platform
import statistics
import sys
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from benchmarks import bare, scenarios
from benchmarks.scenarios import Pair
from benchmarks.server import database, server

RESULTS = Path(__file__).parent / "RESULTS.md"


def main() -> None:
    """Measure, print, and with --record keep the row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--jobs", type=int, default=200_000, help="jobs to drain (200000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the median counts (3)")
    parser.add_argument("--record", metavar="NAME", help="add a row of this name to RESULTS.md")
    options = parser.parse_args()
    with server() as admin:
        figures = measure(admin, options.jobs, options.rounds)
        about = describe(admin, options.jobs, options.rounds)
    print(about)
    for name, pairs in figures.items():
        print(line(name, pairs))
    if options.record:
        record(options.record, about, figures)


def measure(admin: str, jobs: int, rounds: int) -> dict[str, list[Pair]]:
    """Each figure, a pair a round; ours and the bare loop take turns."""
    figures: dict[str, list[Pair]] = {}
    singles = min(2000, jobs)
    for number in range(rounds):
        with database(admin, "pgq_bench") as dsn:
            with psycopg.connect(dsn, autocommit=True) as conn:
                conn.execute(bare.SCHEMA)
            p50, p99 = scenarios.latency(dsn, min(300, jobs))
            found = {
                "drain, async, jobs/s": scenarios.drain(dsn, jobs, "noop"),
                "drain, threads, jobs/s": scenarios.drain(dsn, jobs, "noop_thread"),
                "pick-up p50, ms": p50,
                "pick-up p99, ms": p99,
                "enqueue_many, jobs/s": scenarios.enqueue_bulk(dsn, jobs),
                "enqueue, jobs/s": scenarios.enqueue_single(dsn, singles),
            }
        for name, pair in found.items():
            figures.setdefault(name, []).append(pair)
            print(f"round {number + 1}: {line(name, [pair])}", file=sys.stderr, flush=True)
    return figures


def line(name: str, pairs: list[Pair]) -> str:
    """One figure: medians of ours and bare, and the median, lowest and highest ratio."""
    ratios = [pair.ours / pair.bare for pair in pairs]
    ours = statistics.median(pair.ours for pair in pairs)
    theirs = statistics.median(pair.bare for pair in pairs)
    return (
        f"{name:24} {ours:>10,.1f}  bare {theirs:>10,.1f}  ratio {statistics.median(ratios):5.2f}"
        f"  ({min(ratios):.2f} to {max(ratios):.2f})"
    )


def describe(admin: str, jobs: int, rounds: int) -> str:
    """What was measured on what."""
    with psycopg.connect(admin) as conn:
        row = conn.execute("select current_setting('server_version'), current_setting('fsync')")
        version, fsync = row.fetchone() or ("?", "?")
    return (
        f"{jobs:,} jobs, {rounds} rounds, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, PostgreSQL {version}, fsync {fsync}, "
        f"psycopg {psycopg.__version__}"
    )


def record(name: str, about: str, figures: dict[str, list[Pair]]) -> None:
    """Append the row to RESULTS.md."""
    today = datetime.now(UTC).date().isoformat()
    shown = "\n".join(line(key, pairs) for key, pairs in figures.items())
    with RESULTS.open("a", encoding="utf-8") as results:
        results.write(f"\n## {today}: {name}\n\n{about}\n\n```\n{shown}\n```\n")


main()
