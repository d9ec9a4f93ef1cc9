"""What varies: how far seeds, single assumptions, all assumptions and engines move a result.

Each headline metric is compared with its value at the defaults, flow by flow and point by point; a
design point then has one number for each experiment and metric: the median of those changes.
Changes are relative, but for ratios such as a loss rate, which may be zero: theirs are differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from replication.measure.metric_model import METRICS
from replication.sensitivity.design import SensitivityDesign
from replication.sensitivity.design_point import DEFAULT, ONE_AT_A_TIME, SEED, SPACE_FILLING
from replication.study.storage.table import read_frame

SPREAD_TABLE = ("study", "experiment", "metric", "unit", "source", "point", "change")
#: Sources of spread, from the narrowest question to the widest.
SOURCES = {
    SEED: "other seeds",
    ONE_AT_A_TIME: "one assumption",
    SPACE_FILLING: "all assumptions",
    "engine": "other engines",
}
_KEYS = ["experiment", "levels", "flow", "metric"]


def spread_table(
    design: SensitivityDesign, judged: pd.DataFrame, evaluation: Path
) -> Iterator[dict[str, object]]:
    """Yield the change of each metric at each design point, and between the engines of a tier.

    Parameters
    ----------
    design, judged
        The design, and the headline metrics at its points (`verdict_point.spread_rows`).
    evaluation
        Folder with the quantities.csv of a tier; without it no engines are compared.
    """
    kinds = {point.id: point.kind for point in design.points}
    defaults = judged[judged["point"] == DEFAULT]
    others = judged[judged["point"] != DEFAULT]
    changes = _changes(others, defaults)
    for (point, experiment, metric), change in changes.items():
        yield _row(design, experiment, metric, SOURCES[kinds[point]], point, change)
    path = evaluation / "quantities.csv"
    if not path.is_file():
        return
    tier = read_frame(path, usecols=["engine", *_KEYS, "mean"])
    tier = tier.rename(columns={"mean": "value", "engine": "point"})
    ours = tier[tier["point"] == design.engine]
    for (engine, experiment, metric), change in _changes(
        tier[tier["point"] != design.engine], ours
    ).items():
        yield _row(design, experiment, metric, SOURCES["engine"], engine, change)


def _changes(others: pd.DataFrame, base: pd.DataFrame) -> dict[tuple[str, str, str], float]:
    joined = others.merge(base[[*_KEYS, "value"]], on=_KEYS, suffixes=("", "_base"))
    is_ratio = joined["metric"].map(lambda name: METRICS[str(name)].unit == "1")
    change = joined["value"] - joined["value_base"]
    joined["change"] = change.where(is_ratio, change / joined["value_base"].where(lambda b: b != 0))
    medians = joined.groupby(["point", "experiment", "metric"], sort=False)["change"].median()
    return {key: float(value) for key, value in medians.dropna().items()}  # type: ignore[misc]


def _row(
    design: SensitivityDesign, experiment: str, metric: str, source: str, point: str, change: float
) -> dict[str, object]:
    return {
        "study": design.study,
        "experiment": experiment,
        "metric": metric,
        "unit": "1" if METRICS[metric].unit == "1" else "relative",
        "source": source,
        "point": point,
        "change": change,
    }
