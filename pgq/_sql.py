"""The only module that knows where the SQL files are: in the installed package, or the checkout."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


@lru_cache(maxsize=1)
def root() -> Traversable:
    """The folder sql/; RuntimeError if this installation has none."""
    packaged = files("pgq") / "sql"
    if packaged.is_dir():
        return packaged
    checkout = Path(__file__).resolve().parent.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / "sql").is_dir():
        return checkout / "sql"
    raise RuntimeError("the SQL files of pgq are missing: install pgq-toolkit anew")


@lru_cache(maxsize=256)
def query(name: str) -> str:
    """The text of sql/queries/NAME.sql."""
    return (root() / "queries" / f"{name}.sql").read_text(encoding="utf-8")


def read_queries() -> None:
    """Read all queries now: a worker must not need a file that an upgrade has taken away."""
    for entry in (root() / "queries").iterdir():
        if entry.name.endswith(".sql"):
            query(entry.name.removesuffix(".sql"))


@dataclass(frozen=True, slots=True)
class SqlFile:
    """A migration or function: its name without the ending, its text, and what tells it changed."""

    name: str
    text: str

    @property
    def number(self) -> int:
        """The number a migration's name begins with."""
        return int(self.name.split("_", 1)[0])

    @property
    def checksum(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations() -> list[SqlFile]:
    """All migrations, in the order to apply them."""
    return sorted(_folder("migrations"), key=lambda file: file.number)


def functions() -> list[SqlFile]:
    """All functions (and the triggers that call them), in order of name."""
    return sorted(_folder("functions"), key=lambda file: file.name)


def _folder(name: str) -> Iterator[SqlFile]:
    for entry in (root() / name).iterdir():
        if entry.name.endswith(".sql"):
            yield SqlFile(entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8"))
