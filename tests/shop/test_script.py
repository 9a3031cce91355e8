"""demo.sh says what is missing, and what to do about it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with what demo.sh reads before it installs, and an empty PATH beside it."""
    folder = tmp_path / "checkout"
    (tmp_path / "bin").mkdir()
    folder.mkdir()
    for name in ("demo.sh", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return folder


def put(checkout: Path, name: str, script: str) -> None:
    """A program on the PATH of the script."""
    program = checkout.parent / "bin" / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def run(checkout: Path) -> subprocess.CompletedProcess[str]:
    for name in ("cat", "dirname", "id"):
        program = shutil.which(name)
        assert program is not None
        (checkout.parent / "bin" / name).symlink_to(program)
    return subprocess.run(
        ["/bin/sh", checkout / "demo.sh"],
        env={"PATH": str(checkout.parent / "bin")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def sudo() -> str:
    return "" if os.geteuid() == 0 else "sudo "


def test_a_python_without_venv_is_told_how_to_get_it(checkout: Path) -> None:
    put(checkout, "python3", 'case "$2" in *ensurepip*) exit 1 ;; esac')

    done = run(checkout)

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "demo.sh: python3 has no venv. Install it with:",
        f"demo.sh: {sudo()}apt-get install python3-venv",
    ]


def test_a_later_python_without_venv_is_named(checkout: Path) -> None:
    put(checkout, "python3", "exit 1")
    put(checkout, "python3.12", 'case "$2" in *ensurepip*) exit 1 ;; esac')

    done = run(checkout)

    assert done.stderr.splitlines()[-1] == f"demo.sh: {sudo()}apt-get install python3.12-venv"


@pytest.mark.parametrize("old", [True, False])
def test_a_machine_without_a_new_enough_python_is_told_so(checkout: Path, *, old: bool) -> None:
    if old:
        put(checkout, "python3", "exit 1")

    done = run(checkout)

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "demo.sh: needs Python 3.11 or newer, and finds none. Debian, Ubuntu:",
        f"demo.sh: {sudo()}apt-get install python3 python3-venv",
    ]


def test_an_environment_that_cannot_be_made_is_said(checkout: Path) -> None:
    put(checkout, "python3", 'case "$*" in *"-m venv"*) exit 1 ;; esac')
    put(checkout, "rm", "")

    done = run(checkout)

    assert done.returncode == 1
    assert done.stderr == "demo.sh: python3 -m venv .venv-demo failed: see above\n"


def test_packages_that_cannot_be_fetched_are_said_and_tried_again(checkout: Path) -> None:
    make = 'mkdir -p "$3/bin"; printf "#!/bin/sh\\nexit 1\\n" >"$3/bin/python"'
    put(checkout, "python3", f'case "$*" in *"-m venv"*) {make}; chmod +x "$3/bin/python" ;; esac')
    for name in ("rm", "mkdir", "chmod"):
        program = shutil.which(name)
        assert program is not None
        (checkout.parent / "bin" / name).symlink_to(program)

    done = run(checkout)

    assert done.returncode == 1
    assert "the packages could not be installed" in done.stderr
    assert not (checkout / ".venv-demo" / "made-from").exists()
