"""The table of maps, as /data has it for all maps and engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from replication.sensitivity.maps.account import read_account
from replication.study.table import write_table

NAME = "maps.csv"
MAP_COLUMNS = (
    "map",
    "study",
    "claim",
    "engine",
    "axes",
    "points",
    "full_grid_points",
    "holds_share",
    "border_checked",
    "border_right",
    "cpu_minutes",
)


def merge_maps(paths: Sequence[Path], data: Path) -> None:
    """Write maps.csv to `data` from the accounts of maps.

    Raises
    ------
    InputError
        An account is missing or not what was written.
    """
    write_table(data / NAME, [_row(read_account(path)) for path in paths], MAP_COLUMNS)


def _row(found: dict[str, object]) -> dict[str, object]:
    points, axes = found["points"], found["axes"]
    facets = found["facets"]
    assert isinstance(points, list) and isinstance(axes, list) and isinstance(facets, list)
    return {
        "map": found["map"],
        "study": found["study"],
        "claim": found["claim"],
        "engine": found["engine"],
        "axes": "; ".join(axis["id"] for axis in (*axes, *facets)),
        "points": sum(point["expected"] is None for point in points),
        "full_grid_points": found["full_grid_points"],
        "holds_share": found["share"],
        "border_checked": found["checked"],
        "border_right": found["right"],
        "cpu_minutes": round(float(str(found["cpu_s"])) / 60, 2),
    }
