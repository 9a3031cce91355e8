"""A file of the shop is whole or not there."""

from pathlib import Path

import pytest

from examples.shop.files import whole


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "new" / "a.txt"

    with whole(target) as file:
        file.write(b"half")
        file.flush()
        assert not target.exists()
        file.write(b" and half")

    assert target.read_bytes() == b"half and half"
    assert list(target.parent.iterdir()) == [target]


def test_a_writer_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_bytes(b"old")

    with pytest.raises(TypeError), whole(target) as file:
        file.write("not bytes")  # type: ignore[call-overload]

    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_reader_of_the_old_file_reads_it_to_its_end(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_bytes(b"old")

    with target.open("rb") as reader:
        with whole(target) as file:
            file.write(b"new")
        assert reader.read() == b"old"

    assert target.read_bytes() == b"new"


def test_two_writers_at_once_do_not_mix(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"

    with whole(target) as first, whole(target) as second:
        first.write(b"first")
        second.write(b"second")

    assert target.read_bytes() == b"first"
