"""`python -m tests.chaos chaos|soak`: break a queue for a while, or work it for an hour, and judge.

Exit code 0: as promised; 1: not; the figures are printed, and written with --json.
"""

import argparse
import json
import platform
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.chaos import report, run, soak
from tests.chaos.invariants import judge


def main() -> int:
    """Run what was asked for; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    commands = parser.add_subparsers(required=True)
    _chaos_options(commands.add_parser("chaos", help="kill, stop, crash; then judge the end state"))
    _soak_options(commands.add_parser("soak", help="work for an hour; memory must stay flat"))
    options = parser.parse_args()
    code: int = options.command(options)
    return code


def _chaos_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=chaos)
    parser.add_argument("--minutes", type=float, default=10, help="how long things break (10)")
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs in that time (20000)")
    parser.add_argument("--workers", type=int, default=3, help="worker processes (3)")
    parser.add_argument("--every", type=float, default=4, help="seconds between two faults (4)")
    parser.add_argument("--seed", type=int, default=1, help="another one, other faults (1)")
    parser.add_argument("--pooler", action="store_true", help="workers go through PgBouncer")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")


def chaos(options: argparse.Namespace) -> int:
    """A chaos run; the folder with its logs stays when something was violated."""
    folder = Path(tempfile.mkdtemp(prefix="pgq-chaos-"))
    wanted = run.Options(
        seconds=options.minutes * 60,
        jobs=options.jobs,
        workers=options.workers,
        seed=options.seed,
        pooled=options.pooler,
        every=options.every,
    )
    history, server = run.run(wanted, folder)
    verdict = judge(history)
    about = {
        "what": "chaos",
        "minutes": options.minutes,
        "workers": options.workers,
        "every": options.every,
        "seed": options.seed,
        "pooler": options.pooler,
        "versions": versions(server),
    }
    found = report.figures(history, verdict, about)
    print(report.text(found))
    _write(found, options.json)
    if verdict.violations:
        print(f"logs and journals are in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


def _soak_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=soaked)
    parser.add_argument("--minutes", type=float, default=60, help="how long (60)")
    parser.add_argument("--rate", type=float, default=500, help="jobs a second (500)")
    parser.add_argument("--every", type=float, default=10, help="seconds between samples (10)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")


def soaked(options: argparse.Namespace) -> int:
    """A soak."""
    wanted = soak.Options(seconds=options.minutes * 60, rate=options.rate, every=options.every)
    found = soak.run(wanted)
    about = {"what": "soak", "minutes": options.minutes, "rate": options.rate}
    found = about | found | {"versions": versions(found["versions"]["postgresql"])}
    print(report.soak_text(found))
    _write(found, options.json)
    return 1 if found["violations"] else 0


def versions(server: str) -> dict[str, str]:
    """With what it was run."""
    return {
        "pgq": version("pgq-toolkit"),
        "python": platform.python_version(),
        "postgresql": server,
        "psycopg": version("psycopg"),
        "system": platform.platform(),
    }


def _write(found: dict[str, Any], path: Path | None) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
