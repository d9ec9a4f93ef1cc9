"""Names that a user gives: the project's folder, and one of several known names."""

from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path

from replication.base.environment import ROOT
from replication.base.errors import InputError, quoted
from replication.design.config import STUDIES


def find_project(root: str = "") -> Path:
    """Return the folder `root`, or the nearest project at or above the working folder.

    Without either it is the project that this package belongs to. InputError: there is none.
    """
    here = Path.cwd()
    places = [Path(root)] if root else [here, *here.parents, ROOT]
    for place in places:
        if (place / STUDIES).is_dir():
            return place
    where = root or "this folder or above it"
    raise InputError(f"root: no {STUDIES.as_posix()} in {where}; set `root` to the project")


def check_name(what: str, name: object, known: Collection[str], where: str = "") -> None:
    """Raise InputError unless a name is known, with the nearest one and `where` all are listed."""
    if name in known:
        return
    # A part of a long name, such as `buffer`, is not a close match of it.
    parts = sorted((longer for longer in known if str(name) and str(name) in longer), key=len)
    near = parts or get_close_matches(str(name), known, 1, 0.4)
    nearest = f"; nearest: {near[0]}" if near else ""
    rest = f"; {where} lists all" if where else f"; there are {', '.join(sorted(known)) or 'none'}"
    raise InputError(f"{what}: {quoted(name)} is unknown{nearest}{rest}")
