"""Photos of every kind become small, upright, plain JPEG files; broken ones fail for good."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from PIL import Image

import pgq
from examples.shop.photos import photo_folder, resize_photo

PHOTOS = photo_folder()
BROKEN = "tote.jpg"
GOOD = sorted(path.name for path in PHOTOS.iterdir() if path.name != BROKEN)


@pytest.fixture
def uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of uploaded photos."""
    folder = tmp_path / "uploads"
    folder.mkdir()
    monkeypatch.setenv("SHOP_PHOTOS", str(folder))
    return folder


@pytest.mark.parametrize("name", GOOD)
def test_a_photo_becomes_a_small_jpeg(outbox: Path, name: str) -> None:
    resize_photo(name, size=160)

    with Image.open(outbox / "photos" / f"{Path(name).stem}-160.jpg") as small:
        small.load()
        assert (small.format, small.mode, max(small.size)) == ("JPEG", "RGB", 160)


def test_a_photo_keeps_its_colours(outbox: Path) -> None:
    resize_photo("mugs.jpg", size=300)  # which is stored in the colours of print

    with Image.open(outbox / "photos" / "mugs-300.jpg") as small:
        assert small.getpixel((75, 110)) == pytest.approx((128, 165, 191), abs=8)


def test_a_photo_that_was_taken_sideways_stands_upright(outbox: Path) -> None:
    resize_photo("lamp.jpg", size=160)

    with Image.open(outbox / "photos" / "lamp-160.jpg") as small:
        assert small.size == (120, 160)


def test_what_is_transparent_becomes_white(outbox: Path) -> None:
    resize_photo("pot.png", size=160)

    with Image.open(outbox / "photos" / "pot-160.jpg") as small:
        assert small.getpixel((2, 2)) == (255, 255, 255)


def test_a_small_photo_is_not_made_larger(outbox: Path) -> None:
    resize_photo("pot.png", size=2000)

    with Image.open(outbox / "photos" / "pot-2000.jpg") as copy:
        assert copy.size == (500, 500)


def test_a_photo_whose_upload_broke_off_fails_for_good(outbox: Path) -> None:
    with pytest.raises(pgq.Fail, match="truncated"):
        resize_photo(BROKEN)

    assert not outbox.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not an image",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"\xff\xd8\xff\xe0" + b"\0" * 64,
        b"GIF89a\x01\0\x01\0\0\0\0;",
    ],
)
def test_what_is_no_photo_fails_for_good(outbox: Path, uploads: Path, content: bytes) -> None:
    (uploads / "x.jpg").write_bytes(content)

    with pytest.raises(pgq.Fail, match="not a usable image"):
        resize_photo("x.jpg")

    assert not outbox.exists()


def test_a_photo_that_would_fill_the_memory_fails_for_good(
    uploads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(PHOTOS / "pot.png", uploads / "x.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)

    with pytest.raises(pgq.Fail, match="not a usable image"):
        resize_photo("x.png")


def test_a_disk_that_cannot_be_read_is_tried_again(uploads: Path) -> None:
    (uploads / "x.jpg").mkdir()

    with pytest.raises(IsADirectoryError):
        resize_photo("x.jpg")


def test_a_photo_that_is_still_uploaded_is_waited_for(outbox: Path, uploads: Path) -> None:
    assert resize_photo("pot.png") == pgq.snooze(timedelta(seconds=1))

    shutil.copy(PHOTOS / "pot.png", uploads)
    assert resize_photo("pot.png") == {
        "file": str(outbox / "photos" / "pot-640.jpg"),
        "width": 500,
        "height": 500,
    }


@pytest.mark.parametrize("name", ["../secret.png", "/etc/passwd", ".", "..", "", "link.png"])
def test_no_name_leads_out_of_the_photos(outbox: Path, uploads: Path, name: str) -> None:
    shutil.copy(PHOTOS / "pot.png", uploads.parent / "secret.png")
    (uploads / "link.png").symlink_to("../secret.png")

    with pytest.raises(pgq.Fail, match="not the name of a file"):
        resize_photo(name)

    assert not outbox.exists()


@pytest.mark.parametrize("size", [0, -5, 15, 4097])
def test_a_senseless_size_fails_for_good(size: int) -> None:
    with pytest.raises(pgq.Fail, match="size must be"):
        resize_photo("pot.png", size=size)
