"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from replication.run.environment import require_own_code


def _own(root: Path) -> Path:
    """Return the project's folder, which must be this code's own."""
    require_own_code(root)
    return root


Root = Annotated[
    Path, typer.Option(help="The project's folder.", envvar="REPLICATION_ROOT", callback=_own)
]
Data = Annotated[Path, typer.Option(help="Folder of reproduced results.")]
HERE = Path()
DATA = Path("data/reproduced")

Tier = Annotated[str | None, typer.Option(help="quick, paper or deep.")]
Studies = Annotated[str | None, typer.Option(help="Comma-separated study ids, or all.")]
Engines = Annotated[str | None, typer.Option(help="Comma-separated engines.")]
Ns3 = Annotated[str | None, typer.Option("--ns3-version", help="Version of engine ns3.")]
Runtime = Annotated[str | None, typer.Option(help="native, docker or podman.")]


def given(**settings: Any) -> dict[str, Any]:
    """Return the settings that the command line gives, to be laid over the configuration."""
    return {key: value for key, value in settings.items() if value is not None}
