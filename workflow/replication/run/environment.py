"""The environment that the project runs in, and the folder that it can run in.

configs/environment.yaml lists what of the caller's environment reaches the project. Everything else
stays outside, and HOME is a folder of the project's own.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from replication.study.errors import InputError
from replication.study.files import read_yaml

ROOT = Path(__file__).resolve().parents[3]
#: Where the caller's own HOME is kept, for the programs that have their settings and data there.
CALLERS_HOME = "REPLICATION_HOME"
_LIST = "configs/environment.yaml"
_PACKAGE = Path(__file__).resolve().parents[1]
#: What runs write to.
_WRITTEN = (".", ".snakemake", ".cache", "data/reproduced", "reports")


def enter(root: Path) -> None:
    """Let nothing of the caller's environment reach this process and its children but the list's.

    Parameters
    ----------
    root
        The project's folder; one without code, as results alone have, takes any.

    Raises
    ------
    InputError
        The folder has code of its own, which this is not, or PYTHONPATH added other modules.
    """
    require_own_code(root)
    for path in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        if Path(path).resolve() != _PACKAGE.parent:
            raise InputError(f"PYTHONPATH: {path!r} would replace locked packages: unset it")
    document = read_yaml(ROOT / _LIST)
    home = os.environ.get(CALLERS_HOME) or os.environ.get("HOME", "")
    clean = _kept(document, *(set(document) - {"fixed"})) | {CALLERS_HOME: home}
    os.environ.clear()
    os.environ.update(clean)


def core() -> dict[str, str]:
    """Return the environment of simulators."""
    return _kept(read_yaml(ROOT / _LIST), "core")


def with_callers_home() -> dict[str, str]:
    """Return our environment with the caller's HOME, where container engines keep their images."""
    return os.environ | {"HOME": os.environ.get(CALLERS_HOME) or os.environ.get("HOME", "/")}


@contextlib.contextmanager
def environment_of_notebooks(home: str) -> Iterator[None]:
    """Give what is started in the block the core and the project's own settings, and a HOME."""
    before = dict(os.environ)
    clean = _kept(read_yaml(ROOT / _LIST), "core", "own") | {"HOME": home}
    os.environ.clear()
    os.environ.update(clean)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _kept(document: Mapping[str, Any], *purposes: str) -> dict[str, str]:
    patterns = [pattern for purpose in purposes for pattern in document[purpose]]
    kept = {
        name: value
        for name, value in os.environ.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    fixed = {name: str(value) for name, value in document["fixed"].items()}
    tools, path = str(Path(sys.executable).parent), kept.get("PATH", os.defpath)
    return (
        kept
        | fixed
        | {
            "HOME": str(ROOT / ".cache" / "home"),
            "LOGNAME": account(os.getuid()),
            "PATH": path if path.split(os.pathsep)[0] == tools else f"{tools}{os.pathsep}{path}",
            # Also in a copy that is run by the Python of the original.
            "PYTHONPATH": str(_PACKAGE.parent),
        }
    )


def account(uid: int) -> str:
    """Return a user's name, or the number of one that has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def require_own_code(root: Path) -> None:
    """Raise InputError if the folder has code of its own, which this is not."""
    own = root / "workflow" / _PACKAGE.name
    if (own / "__init__.py").is_file() and not own.samefile(_PACKAGE):
        raise InputError(
            f"folder {root.resolve()}: has code of its own, but this command is that of "
            f"{_PACKAGE.parents[1]}: run it by make, or in its own environment (make setup)"
        )


def require_usable(root: Path) -> None:
    """Require that the workflow can run in a folder, by its name, owner and modes.

    Raises
    ------
    InputError
        It cannot; the message names the folder and what helps.
    """
    found = re.search(r"[^\w/.,+@=%~-]", str(root))
    if found:
        raise InputError(
            f"folder {str(root)!r}: {found[0]!r} in its name means something to make or the "
            "shell; move the project to a folder of letters, digits and . _ -"
        )
    owner = root.stat().st_uid
    if os.geteuid() == 0 and owner != 0:
        raise InputError(
            f"folder {root}: belongs to {account(owner)}, who could not write what root leaves "
            f"there: run as {account(owner)}"
        )
    for path in (root / name for name in _WRITTEN):
        if path.exists() and not os.access(path, os.W_OK):
            raise InputError(
                f"{path}: cannot be written by {account(os.geteuid())}; make it writable, or copy "
                "the project elsewhere"
            )
