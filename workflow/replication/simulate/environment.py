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
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from replication.study.errors import InputError
from replication.study.files import read_yaml

ROOT = Path(__file__).resolve().parents[3]
#: Where the caller's own HOME is kept, for the programs that have their settings and data there.
CALLERS_HOME = "REPLICATION_HOME"
_PACKAGE = Path(__file__).resolve().parents[1]
#: What runs write to.
_WRITTEN = (".", ".snakemake", ".cache", "data/reproduced", "reports")


def enter(root: Path) -> None:
    """Let only the list's environment reach this process; InputError where other code would run."""
    own = root / "workflow" / _PACKAGE.name
    if (own / "__init__.py").is_file() and not own.samefile(_PACKAGE):
        raise InputError(
            f"folder {root.resolve()}: has code of its own, but this command is that of "
            f"{_PACKAGE.parents[1]}: run it by make, or in its own environment (make setup)"
        )
    for path in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        if Path(path).resolve() != _PACKAGE.parent:
            raise InputError(f"PYTHONPATH: {path!r} would replace locked packages: unset it")
    home = os.environ.get(CALLERS_HOME) or os.environ.get("HOME", "")
    _replace(_kept() | {CALLERS_HOME: home})


def enter_workflow(root: Path) -> None:
    """Let only the project's environment reach the workflow; InputError if it cannot run here."""
    if profile := os.environ.get("SNAKEMAKE_PROFILE"):
        raise InputError(
            f"SNAKEMAKE_PROFILE: {profile!r} is a profile from elsewhere: unset it; those of "
            "the project are in workflow/profiles (--workflow-profile)"
        )
    enter(root)
    require_usable(root)


def core() -> dict[str, str]:
    """Return the environment of simulators."""
    return _kept("core")


def with_callers_home() -> dict[str, str]:
    """Return our environment with the caller's HOME, where container engines keep their images."""
    return os.environ | {"HOME": os.environ.get(CALLERS_HOME) or os.environ.get("HOME", "/")}


@contextlib.contextmanager
def environment_of_notebooks(home: str) -> Iterator[None]:
    """Give what is started in the block the core and the project's own settings, and a HOME."""
    before = dict(os.environ)
    _replace(_kept("core", "own") | {"HOME": home})
    try:
        yield
    finally:
        _replace(before)


def _replace(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


def _kept(*purposes: str) -> dict[str, str]:
    """Return what the list lets in for these purposes (all, if none), and what it fixes."""
    lists = read_yaml(ROOT / "configs" / "environment.yaml")
    fixed = {name: str(value) for name, value in lists.pop("fixed").items()}
    let_in = [pattern for purpose in purposes or lists for pattern in lists[purpose]]
    kept = {
        name: value
        for name, value in os.environ.items()
        if any(fnmatchcase(name, pattern) for pattern in let_in)
    }
    tools, path = str(Path(sys.executable).parent), kept.get("PATH", os.defpath)
    return {
        **kept,
        **fixed,
        "HOME": str(ROOT / ".cache" / "home"),
        "LOGNAME": account(os.getuid()),
        "PATH": path if path.split(os.pathsep)[0] == tools else f"{tools}{os.pathsep}{path}",
        # Also in a copy that is run by the Python of the original.
        "PYTHONPATH": str(_PACKAGE.parent),
    }


def account(uid: int) -> str:
    """Return a user's name, or the number of one that has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def require_usable(root: Path) -> None:
    """Raise InputError unless the workflow can run in a folder, by its name, owner and modes."""
    if found := re.search(r"[^\w/.+@=~-]", str(root)):
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
