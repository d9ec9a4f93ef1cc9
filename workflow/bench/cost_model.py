"""The cost model, held against what the last report's runs used."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from replication.report.parts.bench_model import Figure, Prediction
from replication.study.files import read_json
from replication.study.storage.table import DESIGN_COLUMNS, read_rows

#: Predicted and used CPU seconds of one scenario.
Pair = tuple[float, float]
ALL = "all"
#: The goal for nine scenarios in ten, and for the sum of each study.
FACTOR_AT_MOST = 1.5


def factors(rows: list[Prediction]) -> list[Figure]:
    """Return for each engine how far off its model is: in nine runs of ten, in a study's sum."""
    found = []
    for row in rows:
        if row.study == ALL:
            nine = Figure(
                id=f"cost-model-{row.engine}",
                title=f"Cost model of {row.engine}: factor that nine in ten runs are within",
                value=row.p90_factor_apart,
                unit="1",
                how=f"the larger over the smaller, of {row.scenarios} runs of the last report; one "
                "factor for the speed of the machine is left out",
                at_most=FACTOR_AT_MOST,
            )
            found += [nine, _worst_study(row, [own for own in rows if own.engine == row.engine])]
    return found


def _worst_study(whole: Prediction, rows: list[Prediction]) -> Figure:
    speed = whole.median_ratio or 1.0
    off = {row.study: _factors([row.total_ratio / speed])[0] for row in rows if row.study != ALL}
    worst = max(off, key=lambda study: off[study])
    return Figure(
        id=f"cost-model-study-{whole.engine}",
        title=f"Cost model of {whole.engine}: factor that the sum of every study is within",
        value=round(off[worst], 3),
        unit="1",
        how=f"predicted over used of {worst}, the larger over the smaller; the speed of the "
        "machine, which is the median run's, is left out",
        at_most=FACTOR_AT_MOST,
    )


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
        median_ratio=round(speed, 4),
    )


def _factors(ratios: Iterable[float]) -> list[float]:
    return sorted(max(ratio, 1 / ratio) for ratio in ratios)


def _p90(ordered: list[float]) -> float:
    return ordered[math.ceil(0.9 * len(ordered)) - 1]


def finished_batches(data: Path) -> dict[str, dict[str, Any]]:
    """Return what each finished batch of the designs below `data` used, as it wrote it down."""
    found = {}
    for path in sorted((data / "design").glob("*.csv")):
        for batch in sorted({row["batch"] for row in read_rows(path, DESIGN_COLUMNS)} - {""}):
            usage = data / "batches" / f"{batch}.usage.json"
            if usage.is_file():
                found[batch] = read_json(usage)
    return found


def _used(data: Path) -> dict[tuple[str, str], float]:
    """Return the CPU seconds of each finished run by engine and scenario."""
    used = {}
    for document in finished_batches(data).values():
        for run in document["runs"]:
            if run["cpu_s"] > 0:
                used[document["engine"], run["scenario"]] = float(run["cpu_s"])
    return used
