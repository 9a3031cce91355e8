"""The program psql, for what must work without a line of Python."""

import os
import subprocess

from tests.support import binaries


def psql(dsn: str, script: str, *options: str) -> list[str]:
    """Run a script, stop at its first error, and give the lines of what it prints.

    Rows come one a line, their columns apart by `|`. Fails with psql's own words.
    """
    programs = binaries.find(int(os.environ.get("PGQ_TEST_PG", "18")))
    command = [
        str(programs / "bin" / "psql"), "--no-psqlrc", "--quiet", "--no-align", "--tuples-only",
        "--set=ON_ERROR_STOP=1", "--set=VERBOSITY=verbose", *options, "--file=-", dsn,
    ]  # fmt: skip
    done = subprocess.run(command, input=script, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
