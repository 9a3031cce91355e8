"""Files that a worker killed at any moment, or a payload with a hostile name, cannot spoil."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pgq


def outbox() -> Path:
    """The folder for what the shop makes."""
    return Path(os.environ.get("SHOP_OUTBOX") or "outbox")


def inside(folder: Path, name: str) -> Path:
    """The path of `name` below `folder`; fails the job for good if it leads elsewhere."""
    root = folder.resolve()
    path = (root / name).resolve()
    if path == root or not path.is_relative_to(root):
        raise pgq.Fail(f"{name!r} is not the name of a file in {folder.name}")
    return path


@contextmanager
def whole(target: Path) -> Iterator[IO[bytes]]:
    """A file to write that appears under its name at the end, complete, or not at all.

    Two attempts may write it at once (a worker that was taken for dead may still run): each
    writes a file of its own, and the last one to finish stays.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
