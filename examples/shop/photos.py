"""Product photos, made small for the web.

A `def` handler: Pillow is bound to the processor and lets go of the interpreter while it works.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from PIL import Image, ImageOps

import pgq
from examples.shop.app import app
from examples.shop.files import inside, outbox, whole

NOT_YET = timedelta(seconds=1)


@app.job("resize_photo", queue="photos", retry=timedelta(seconds=1))
def resize_photo(photo: str, size: int = 640) -> object:
    """Make a JPEG of a photo whose longer side is at most `size` pixels.

    A photo that is not there is still being uploaded: the job is snoozed, which costs no attempt.
    """
    if not 16 <= size <= 4096:
        raise pgq.Fail(f"size must be from 16 to 4096, not {size}")
    source = inside(photo_folder(), photo)
    if not source.exists():
        return pgq.snooze(NOT_YET)
    target = outbox() / "photos" / f"{source.stem}-{size}.jpg"
    with corruption_is_final(photo), Image.open(source, formats=["JPEG", "PNG"]) as original:
        small = shrink(original, size)
    with whole(target) as file:
        small.save(file, "JPEG", quality=85)
    return {"file": str(target), "width": small.width, "height": small.height}


def photo_folder() -> Path:
    """The folder of the photos as they were uploaded."""
    return Path(os.environ.get("SHOP_PHOTOS") or Path(__file__).with_name("products"))


def shrink(original: Image.Image, size: int) -> Image.Image:
    """A copy the right way up, at most `size` pixels long, in plain RGB on white."""
    upright = ImageOps.exif_transpose(original)
    # Not later: a palette's colours cannot be mixed.
    small = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
    small.thumbnail((size, size), Image.Resampling.LANCZOS)
    if small.mode == "RGB":
        return small
    return Image.alpha_composite(Image.new("RGBA", small.size, "white"), small).convert("RGB")


@contextmanager
def corruption_is_final(photo: str) -> Iterator[None]:
    """Fail the job for good where Pillow complains of the data: it will not get better."""
    try:
        yield
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk complains, not Pillow: that may pass
        raise pgq.Fail(f"{photo!r} is not a usable image: {error}") from error
