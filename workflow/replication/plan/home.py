"""Home: the project whose code this is, and the only one that it runs.

An environment belongs to the folder that it was made in: in another, be it a copy, its commands
are still those of the first.
"""

from __future__ import annotations

import os
from pathlib import Path

from replication.study.errors import InputError

PACKAGE = Path(__file__).resolve().parents[1]


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
