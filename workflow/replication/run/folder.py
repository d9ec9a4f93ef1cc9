"""The project's folder: whose code runs in it, and whether a run can write and read there.

An environment belongs to the folder that it was made in: in another, be it a copy, its commands
are still those of the first.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from pathlib import Path

from replication.run.process import isolate
from replication.study.errors import InputError

PACKAGE = Path(__file__).resolve().parents[1]
#: What runs write to.
_MADE = (".snakemake", ".cache", "data/reproduced", "reports")
#: How far below these we look: engines, logs and batches, but not into ten thousand finished runs.
_DEPTH = 2


def require_home(root: Path) -> None:
    """Require that nothing runs in a project but its own code and the locked packages.

    Parameters
    ----------
    root
        The project's folder; one without code, as results alone have, takes any.

    Raises
    ------
    InputError
        It has code of its own, which this is not, or PYTHONPATH adds other modules.
    """
    own = root / "workflow" / PACKAGE.name
    if (own / "__init__.py").is_file() and not own.samefile(PACKAGE):
        raise InputError(
            f"folder {root.resolve()}: has code of its own, but this command is that of "
            f"{PACKAGE.parents[1]}: run it by make, or in its own environment (make setup)"
        )
    paths = os.environ.get("PYTHONPATH")
    for path in paths.split(os.pathsep) if paths else ():
        if Path(path).resolve() != PACKAGE.parent:
            raise InputError(
                f"PYTHONPATH: {path!r} would be imported from beside the locked packages: unset "
                "it, or run by make"
            )


def require_plain_name(root: Path) -> None:
    """Raise InputError unless shells and make read the project's folder as one plain name."""
    found = re.search(r"[^\w/.,+@=%~-]", str(root))
    if found:
        raise InputError(
            f"folder {str(root)!r}: {found[0]!r} in its name means something to make or the "
            "shell; move the project to a folder of letters, digits and . _ -"
        )


def require_writable(root: Path) -> None:
    """Require that a run can write what it makes: Snakemake would end with a traceback.

    Raises
    ------
    InputError
        Something is another user's or read-only; the message has the command that helps.
    """
    for path in (root, *_made(root)):
        # What is ours but read-only can be replaced, unless it is a folder.
        if os.access(path, os.W_OK) or not path.exists():
            continue
        owner = path.stat().st_uid
        if owner != os.geteuid():
            raise InputError(
                f"{path}: belongs to {_name(owner)} and cannot be written (was that a run as "
                f"{_name(owner)}?): run `sudo chown -R {_name(os.geteuid())} {root}`, or copy the "
                "project elsewhere"
            )
        if path.is_dir():
            raise InputError(
                f"folder {path}: cannot be written; make it writable, or copy the project elsewhere"
            )


def require_readable_without_privileges(root: Path) -> None:
    """Require of root that its simulators, which run without root's privileges, see the project.

    Raises
    ------
    InputError
        A folder above is closed to them.
    """
    if os.geteuid() == 0 and not _seen_without_privileges(root):
        above = [(path, path.stat()) for path in reversed([root, *root.parents])]
        closed = next((p for p, s in above if s.st_uid != 0 and not s.st_mode & 0o001), root)
        owner = _name(closed.stat().st_uid)
        raise InputError(
            f"folder {closed}: is open to {owner} alone, and simulators started by root run "
            f"without root's privileges: run as {owner}, `chmod o+x {closed}`, or move the project"
        )


def _made(root: Path) -> Iterator[Path]:
    level = [root / name for name in _MADE]
    yield from level
    for _ in range(_DEPTH):
        level = [child for path in level if path.is_dir() for child in path.iterdir()]
        yield from level


def _seen_without_privileges(root: Path) -> bool:
    child = os.fork()
    if child == 0:
        isolate()
        os._exit(0 if os.access(root, os.R_OK | os.X_OK) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
