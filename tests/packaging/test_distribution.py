"""What the wheel and the source distribution carry, built by the real backend."""

import tarfile
import tomllib
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from hatchling import build

from tests.support.processes import run_python

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pgq", "pgq_cli", "pgq_tui")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return folder / build.build_wheel(str(folder))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the unpacked wheel, which is all that installing a pure wheel does."""
    folder = tmp_path_factory.mktemp("site-packages")
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(folder)
    return folder


def sources() -> set[str]:
    """The files of the checkout that a user needs, by their names in the wheel."""
    code = {path for package in PACKAGES for path in (ROOT / package).rglob("*")}
    names = {str(path.relative_to(ROOT)) for path in code if path.is_file()}
    statements = {f"pgq/{path.relative_to(ROOT)}" for path in (ROOT / "sql").rglob("*.*")}
    return {name for name in names | statements if not name.endswith(".pyc")}


def test_the_wheel_carries_the_packages_and_the_sql_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        carried = {name for name in opened.namelist() if ".dist-info/" not in name}
    assert carried == sources()


def test_the_wheel_names_its_commands_and_its_licence(installed: Path) -> None:
    (info,) = installed.glob("*.dist-info")
    distribution = PathDistribution(info)
    commands = {entry.name: entry.value for entry in distribution.entry_points}
    assert commands == {"pgq": "pgq_cli.app:main", "pgqctl": "pgq_cli.app:main"}
    assert distribution.metadata["License-Expression"] == "MIT"
    assert (info / "licenses" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("place", ["wheel", "installed"])
def test_sql_is_found_in_a_zip_and_in_an_installation(
    place: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    origin: Path = request.getfixturevalue(place)
    code = (
        "import pgq; from pgq import _sql\n"
        "print(pgq.__file__, _sql.root(), len(_sql.functions()), len(_sql.migrations()))"
    )
    module, root, *counts = run_python(code, first_on_path=origin, cwd=tmp_path).split()
    assert Path(module) == origin / "pgq" / "__init__.py"
    assert Path(root) == origin / "pgq" / "sql"
    assert 0 not in map(int, counts)


def test_the_source_distribution_carries_the_tests(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        archive = tmp_path / build.build_sdist(str(tmp_path))
    with tarfile.open(archive) as opened:
        carried = {name.partition("/")[2] for name in opened.getnames()}
    wanted = {"LICENSE", "pyproject.toml", "check.sh", "tests/conftest.py", "pgq/__init__.py"}
    assert wanted <= carried
    assert any(name.startswith("sql/migrations/") for name in carried)
    assert not any(name.startswith((".cache", ".venv")) for name in carried)


def test_every_supported_python_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    versions = [text.rpartition(" ")[2] for text in project["classifiers"] if ":: 3." in text]
    assert versions == ["3.11", "3.12", "3.13"]
