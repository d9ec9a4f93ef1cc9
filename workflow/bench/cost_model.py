"""The cost model held against what the finished runs used."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from pathlib import Path

from replication.report.parts.bench_model import Prediction
from replication.study.seal import read_sealed
from replication.study.table import DESIGN_COLUMNS, read_rows

#: Predicted and used CPU seconds of one scenario.
Pair = tuple[float, float]
ALL = "all"


def predictions(data: Path) -> list[Prediction]:
    """Compare the designs' costs with the batches' usage below `data`, each scenario once.

    One row an engine over all studies (`all`), then one for each study; none where nothing ran.
    """
    used = _used(data)
    pairs: dict[tuple[str, str], dict[str, Pair]] = defaultdict(dict)
    for path in sorted((data / "design").glob("*.csv")):
        for row in read_rows(path, DESIGN_COLUMNS):
            engine, scenario = row["engine"], row["scenario"]
            if (engine, scenario) not in used:
                continue
            pair = float(row["cost_s"]), used[engine, scenario]
            pairs[engine, ALL][scenario] = pairs[engine, row["study"]][scenario] = pair
    order = {engine: i for i, engine in enumerate(dict.fromkeys(engine for engine, _ in pairs))}
    names = sorted(pairs, key=lambda key: (order[key[0]], key[1] != ALL, key[1]))
    return [predict(*name, list(pairs[name].values())) for name in names]


def predict(engine: str, study: str, pairs: list[Pair]) -> Prediction:
    """Return how far the predictions in `pairs` are off; both of each pair are above zero."""
    factors = sorted(max(cost / used, used / cost) for cost, used in pairs)
    return Prediction(
        engine=engine,
        study=study,
        scenarios=len(pairs),
        predicted_s=round(math.fsum(cost for cost, _ in pairs), 2),
        used_s=round(math.fsum(used for _, used in pairs), 2),
        median_factor=round(statistics.median(factors), 3),
        p90_factor=round(factors[math.ceil(0.9 * len(factors)) - 1], 3),
    )


def _used(data: Path) -> dict[tuple[str, str], float]:
    """Return the CPU seconds of each finished run by engine and scenario."""
    used = {}
    for path in sorted((data / "batches").glob("*.usage.json")):
        document = json.loads(read_sealed(path))
        for run in document["runs"]:
            if run["cpu_s"] > 0:
                used[document["engine"], run["scenario"]] = float(run["cpu_s"])
    return used
