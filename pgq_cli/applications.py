"""Finding the App that `--app MODULE:APP` names. Its code is the user's, and may do anything."""

import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

import pgq
from pgq import App
from pgq.errors import UsageError


def load(name: str) -> App:
    """The App of this name; UsageError says in one line why there is none.

    The current directory comes first among the places where modules are looked for.
    """
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise UsageError(f"--app {name!r}: write it MODULE:APP, such as shop:app")
    sys.path.insert(0, str(Path.cwd()))
    found: Any = _module(module_name)
    for attribute in path.split("."):
        try:
            found = getattr(found, attribute)
        except AttributeError:
            raise UsageError(f"--app {name}: {module_name} has no {path!r}") from None
    if not isinstance(found, App):
        raise UsageError(f"--app {name}: {path} is a {type(found).__name__}, not a pgq.App")
    return found


def _module(name: str) -> object:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise UsageError(
                f"--app: no module {error.name!r} in {Path.cwd()} or among the installed ones"
            ) from None
        raise _broken(name, error) from error
    except (Exception, SystemExit) as error:  # it is the user's code
        raise _broken(name, error) from error


def _broken(name: str, error: BaseException) -> UsageError:
    text = error.msg if isinstance(error, SyntaxError) else error
    return UsageError(
        f"--app: {name} does not import: {type(error).__name__}: {text} ({_place(error)})"
    )


def _place(error: BaseException) -> str:
    """The file and line of the user's code that an error came from."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{_relative(error.filename)}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith((*_OURS, "<frozen"))]
    last = (theirs or frames)[-1]
    return f"{_relative(last.filename)}:{last.lineno}"


_OURS = (str(Path(pgq.__file__).parent), str(Path(__file__).parent))


def _relative(name: str) -> Path:
    file, here = Path(name), Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file
