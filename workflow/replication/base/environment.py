"""Restrict the environment to configs/environment.yaml, and check the project's folder."""

import contextlib
import os
import pwd
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from replication.base.errors import InputError
from replication.base.lifetime import be_workflow
from replication.base.model import Document
from replication.base.position import read_model

ROOT = Path(__file__).resolve().parents[3]
#: The variable that keeps the caller's HOME.
_CALLERS_HOME = "REPLICATION_HOME"
_PACKAGE = Path(__file__).resolve().parents[1]
#: Folders that runs write to.
_WRITTEN = (".", ".snakemake", ".cache", "data/reproduced", "reports")


class Variables(Document):
    """configs/environment.yaml: variables that reach the project by purpose, and those it sets."""

    core: list[str]
    packages: list[str]
    containers: list[str]
    cluster: list[str]
    display: list[str]
    own: list[str]
    fixed: dict[str, int | str]


PURPOSES = tuple(name for name in Variables.model_fields if name != "fixed")


def enter(root: Path) -> None:
    """Restrict this process's environment; InputError if another folder's code would run."""
    package = root / "workflow" / _PACKAGE.name
    if (package / "__init__.py").is_file() and not package.samefile(_PACKAGE):
        raise InputError(
            f"folder {root.resolve()}: contains a copy of this project, but this command is that "
            f"of {_PACKAGE.parents[1]}: run it by make, or in its environment (make setup)"
        )
    for path in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        if Path(path).resolve() != _PACKAGE.parent:
            raise InputError(f"PYTHONPATH: {path!r} would replace locked packages: unset it")
    _replace(_kept() | {_CALLERS_HOME: _callers_home("")})


def enter_workflow(root: Path) -> None:
    """Restrict the workflow's environment; InputError if it cannot run in folder `root`."""
    if profile := os.environ.get("SNAKEMAKE_PROFILE"):
        raise InputError(
            f"SNAKEMAKE_PROFILE: {profile!r} is not a profile of the project: unset it; the "
            "project's profiles are in workflow/profiles (--workflow-profile)"
        )
    enter(root)
    require_usable(root)
    be_workflow()


def core() -> dict[str, str]:
    """Return the environment of simulators."""
    return _kept("core")


def with_callers_home() -> dict[str, str]:
    """Return our environment with the caller's HOME, where container engines keep their images."""
    return os.environ | {"HOME": _callers_home("/")}


def _callers_home(default: str) -> str:
    return os.environ.get(_CALLERS_HOME) or os.environ.get("HOME", default)


@contextlib.contextmanager
def environment_of_notebooks(home: str) -> Iterator[None]:
    """Give processes of the block the variables of `core` and `own`, and this HOME."""
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
    """Return the variables that the list allows for these purposes (default: all) or sets."""
    lists = read_model(ROOT / "configs" / "environment.yaml", Variables)
    fixed = {name: str(value) for name, value in lists.fixed.items()}
    let_in: list[str] = []
    for purpose in purposes or PURPOSES:
        let_in += getattr(lists, purpose)
    kept = {}
    for name, value in os.environ.items():
        if any(fnmatchcase(name, pattern) for pattern in let_in):
            kept[name] = value
    tools = str(Path(sys.executable).parent)
    path = kept.get("PATH", os.defpath)
    return {
        **kept,
        **fixed,
        "HOME": str(ROOT / ".cache" / "home"),
        "LOGNAME": account(os.getuid()),
        "PATH": path if path.split(os.pathsep)[0] == tools else f"{tools}{os.pathsep}{path}",
        # A copy of the project runs its own code, even by the original's Python.
        "PYTHONPATH": str(_PACKAGE.parent),
    }


def account(uid: int) -> str:
    """Return a user's name, or the number of a user without a name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def require_usable(root: Path) -> None:
    """Raise InputError if name, owner or modes of a folder prevent the workflow from running."""
    if odd := re.search(r"[^\w/.+@=~-]", str(root)):
        sign = {" ": "a space", "\t": "a tab", "\n": "a line end"}.get(odd[0], repr(odd[0]))
        raise InputError(
            f"folder {str(root)!r}: {sign} in its name has a meaning for make or the shell; "
            "move the project to a folder of letters, digits and . _ -"
        )
    owner = root.stat().st_uid
    if os.geteuid() == 0 and owner != 0:
        raise InputError(
            f"folder {root}: belongs to {account(owner)}, who could not change files that root "
            f"writes: run as {account(owner)}"
        )
    for path in (root / name for name in _WRITTEN):
        if path.exists() and not os.access(path, os.W_OK):
            raise InputError(
                f"{path}: cannot be written by {account(os.geteuid())}; make it writable, or copy "
                "the project elsewhere"
            )
