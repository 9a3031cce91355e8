"""The units in examples/systemd: systemd takes them, and their figures fit the worker's."""

import re
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from pgq.errors import UsageError
from pgq.runner import spawned
from pgq.text import parse_duration
from pgq.worker import closing, heartbeat, leaving, queries
from tests.support.workers import PROGRAM, ROOT

UNITS = ROOT / "examples" / "systemd"


def settings(name: str) -> dict[str, str]:
    """The settings of a file, by name; of a variable set by a unit too."""
    lines = (UNITS / name).read_text().splitlines()
    pairs = [line.removeprefix("Environment=").split("=", 1) for line in lines if "=" in line]
    return {name: value for name, value in pairs if not name.startswith("#")}


@pytest.mark.parametrize("unit", ["pgq-worker@.service", "pgq-check.service", "pgq-check.timer"])
def test_systemd_finds_nothing_wrong(unit: str, tmp_path: Path) -> None:
    for file in UNITS.glob("pgq-*"):
        text = file.read_text().replace("/srv/app/.venv/bin/pgq", PROGRAM)
        (tmp_path / file.name).write_text(text)

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_waits_longer_than_a_worker_needs_to_stop() -> None:
    unit = settings("pgq-worker@.service")
    needed = (
        closing.LAST_CLAIM
        + closing.STOPPING
        + closing.FAREWELL  # the last outcomes
        + queries.LAST
        + 2 * heartbeat.PERIOD
        + closing.FAREWELL  # that it stops
        + spawned.LEAVE_WITHIN
        + 1.0  # for those that do not leave
        + leaving.PATIENCE
        + leaving.EXIT
    )

    left = parse_duration(unit["TimeoutStopSec"]) - parse_duration(unit["PGQ_GRACE"])

    assert left > timedelta(seconds=needed)


def test_a_usage_error_is_not_tried_again() -> None:
    unit = settings("pgq-worker@.service")

    assert (unit["Restart"], unit["KillMode"]) == ("always", "mixed")
    assert unit["RestartPreventExitStatus"] == str(UsageError.exit_code)


def test_the_variables_of_the_example_are_those_of_the_worker() -> None:
    source = (ROOT / "pgq_cli" / "commands" / "worker.py").read_text()
    known = set(re.findall(r'envvar="(\w+)"', source)) | {"PGQ_DSN", "PGQ_LOG_FORMAT"}

    assert set(settings("mail.env")) | {"PGQ_GRACE"} <= known


def test_each_file_of_settings_that_a_unit_reads_has_an_example_and_is_installed() -> None:
    readme = (UNITS / "README.md").read_text()
    named = [
        settings(unit)["EnvironmentFile"].replace("%i", "mail")
        for unit in ("pgq-worker@.service", "pgq-check.service")
    ]

    for file in named:
        example = Path(file).name
        assert f"install -m 600 -D {example} {file} " in readme
        assert settings(example)["PGQ_DSN"]
