"""The cost model, and the simulate stage, held against what the last report's runs used."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from replication.report.parts.bench_model import Figure, Prediction
from replication.study.storage.seal import read_sealed
from replication.study.storage.table import DESIGN_COLUMNS, read_rows

#: Predicted and used CPU seconds of one scenario.
Pair = tuple[float, float]
ALL = "all"
#: Goals: the factor of nine scenarios in ten, and the efficiency of the simulate stage.
FACTOR_AT_MOST = 1.5
EFFICIENCY_AT_LEAST = 0.95


def report_figures(data: Path, rows: list[Prediction]) -> list[Figure]:
    """Return what the last report says of the cost model, and of its simulate stage's efficiency.

    Efficiency only where runs were made for it, and not all taken over.
    """
    found = [
        Figure(
            id=f"cost-model-{row.engine}",
            title=f"Cost model of {row.engine}: factor that nine in ten runs are within",
            value=row.p90_factor_apart,
            unit="1",
            how=f"the larger over the smaller, of {row.scenarios} runs of the last report; one "
            "factor for the speed of the machine is left out",
            at_most=FACTOR_AT_MOST,
        )
        for row in rows
        if row.study == ALL
    ]
    path = data / "provenance.json"
    provenance = json.loads(read_sealed(path)) if path.is_file() else {}
    simulate, tier = provenance.get("simulate", {}), provenance.get("tier", {}).get("id")
    if simulate.get("efficiency") is not None:
        found.append(
            Figure(
                id="efficiency-report",
                title=f"Efficiency of the last report's simulate stage, tier {tier}",
                value=simulate["efficiency"],
                unit="1",
                how=f"simulators' CPU over cores x wall time, {simulate['scenarios']} runs",
                at_least=EFFICIENCY_AT_LEAST,
            )
        )
    return found


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
    ratios = [cost / used for cost, used in pairs]
    speed = statistics.median(ratios)
    factors = _factors(ratios)
    return Prediction(
        engine=engine,
        study=study,
        scenarios=len(pairs),
        predicted_s=round(math.fsum(cost for cost, _ in pairs), 2),
        used_s=round(math.fsum(used for _, used in pairs), 2),
        median_factor=round(statistics.median(factors), 3),
        p90_factor=round(_p90(factors), 3),
        p90_factor_apart=round(_p90(_factors(ratio / speed for ratio in ratios)), 3),
    )


def _factors(ratios: Iterable[float]) -> list[float]:
    return sorted(max(ratio, 1 / ratio) for ratio in ratios)


def _p90(ordered: list[float]) -> float:
    return ordered[math.ceil(0.9 * len(ordered)) - 1]


def finished_batches(data: Path) -> Iterator[dict[str, Any]]:
    """Yield what each finished batch below `data` used, as it wrote it down."""
    for path in sorted((data / "batches").glob("*.usage.json")):
        yield json.loads(read_sealed(path))


def _used(data: Path) -> dict[tuple[str, str], float]:
    """Return the CPU seconds of each finished run by engine and scenario."""
    used = {}
    for document in finished_batches(data):
        for run in document["runs"]:
            if run["cpu_s"] > 0:
                used[document["engine"], run["scenario"]] = float(run["cpu_s"])
    return used
