"""The columns of the maps' table, in /data for all maps and engines."""

from __future__ import annotations

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
