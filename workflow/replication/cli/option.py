"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replication.plan.home import require_home


def _own(root: Path) -> Path:
    """Return the project's folder, which must be this code's own."""
    require_home(root)
    return root


Root = Annotated[
    Path, typer.Option(help="The project's folder.", envvar="REPLICATION_ROOT", callback=_own)
]
Data = Annotated[Path, typer.Option(help="Folder of reproduced results.")]
RuntimeName = Annotated[str, typer.Option(help="What starts the engine's program.")]
Program = Annotated[Path | None, typer.Option(help="The program, if native.")]
ImageId = Annotated[str | None, typer.Option(help="The image's id, if not.")]
HERE = Path()
DATA = Path("data/reproduced")
