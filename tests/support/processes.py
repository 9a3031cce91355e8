"""Python in a process of its own, for what a running interpreter cannot show."""

import os
import subprocess
import sys
from pathlib import Path


def run_python(code: str, *, first_on_path: Path | None = None, cwd: Path | None = None) -> str:
    """What the code prints; its standard error is shown when it fails."""
    path = {} if first_on_path is None else {"PYTHONPATH": str(first_on_path)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **path},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
