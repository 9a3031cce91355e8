"""An app that has set up its own logging: a line on stdout, in its own form."""

import logging
import sys

from tests.worker.handlers import app

__all__ = ["app"]

logging.basicConfig(stream=sys.stdout, format="%(name)s says %(message)s", level=logging.INFO)


@app.job("speak apart", isolation="process")
def speak_apart(words: str) -> None:
    logging.getLogger("shop").info(words)
