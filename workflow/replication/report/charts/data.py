"""The numbers behind charts: estimates at each point, labelled, in display units."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow.parquet as pq

from replication.base.files import read_yaml
from replication.base.table import read_parquet
from replication.metrics import metric_model
from replication.metrics.metric import quantity
from replication.metrics.results import Results
from replication.metrics.statistic import estimate
from replication.study.claim_model import Measured, Quantity
from replication.study.parameter import Factor
from replication.study.published import Cell, Table
from replication.study.setup import Setup
from replication.study.study import Experiment, Study
from replication.verdicts.verdict_table import read_table
from replication.verdicts.wording import figure, lower

#: Longer lists of numbers or series are summarised by their ends.
MOST_NAMED = 12


@dataclass(frozen=True)
class Display:
    """How a quantity is shown: `factor` converts from SI, `highest` is its upper bound."""

    label: str
    unit: str
    factor: float
    highest: float = math.inf

    @property
    def title(self) -> str:
        """The title of an axis."""
        return self.titled(self.label)

    @property
    def words(self) -> str:
        """The label within a sentence."""
        return self.label if self.label.startswith("Jain") else lower(self.label)

    def titled(self, words: str) -> str:
        """Return words with the unit, if there is one."""
        unit = self.unit.replace(" (", ", ").replace(")", "")  # for "KB (as printed)"
        return f"{words} ({unit})" if unit else words


def display_of(wanted: Measured) -> Display:
    """Return how a quantity is shown: loss rates in per cent, indices and ratios without a unit."""
    metric, label = wanted.metric, metric_model.metric_label(wanted.metric)
    if wanted.aggregate == "jain":
        return Display(f"Jain's index of {label}", "", 1.0, 1.0)
    label, largest = metric_model.capitalised(label), metric_model.largest(metric)
    if metric == "loss_rate":
        return Display(label, "%", 100.0, 100.0 * largest)
    return Display(label, *_shown_in(metric_model.METRICS[metric].unit), largest)


def display_factor(factor: Factor) -> Display:
    """Return how a factor's values are shown on an axis."""
    return Display(factor.label, *_shown_in(factor.unit))


def _shown_in(unit: str) -> tuple[str, float]:
    shown, factor = metric_model.display_unit(unit)
    return "" if shown == "1" else shown, factor


def axis_factor(experiment: Experiment) -> Factor | None:
    """Return the factor with the most levels among those whose levels are all numbers."""
    varied = [factor for factor in experiment.factors if len(factor.levels) > 1]
    numeric = [factor for factor in varied if is_numeric(factor)]
    return max(numeric, key=lambda factor: len(factor.levels), default=None)


def is_numeric(factor: Factor) -> bool:
    """Return whether all levels of a factor are numbers."""
    return all(level.value is not None for level in factor.levels)


def level_label(factor: Factor, key: str) -> str:
    """Return the label of a level, or its key if the study has no such level."""
    return next((level.label for level in factor.levels if level.key == key), key)


def labels_of(levels: Mapping[Any, Any], factors: Iterable[Factor]) -> str:
    """Return the labels of the levels of those factors that have one."""
    return ", ".join(level_label(f, levels[f.id]) for f in factors if f.id in levels)


def unsaid_unit(factor: Factor) -> str:
    """Return the unit of a factor's levels; empty if their labels already have it."""
    is_said = all(level.label.endswith(factor.unit) for level in factor.levels)
    return "" if factor.unit == "1" or is_said else factor.unit


def levels_in_brief(factor: Factor) -> str:
    """Return the labels of a factor's levels; only the first and last of many numbers."""
    labels = [level.label for level in factor.levels]
    if len(labels) > MOST_NAMED and is_numeric(factor):
        return f"{labels[0]} to {labels[-1]} ({len(labels)} levels)"
    return ", ".join(labels)


def label_points(frame: pd.DataFrame, experiment: Experiment, axis: Factor | None) -> pd.DataFrame:
    """Add `x` (value of the axis factor, display units) and `series` (labels of other levels)."""
    frame = frame.copy()
    if axis is not None and axis.id in frame:
        scale = display_factor(axis).factor
        values = {level.key: level.value for level in axis.levels}
        frame["x"] = scale * frame[axis.id].map(values).astype(float)
    frame["series"] = [series_of(row, experiment, axis) for row in frame.to_dict("records")]
    return frame


def estimates(results: Results, experiment: Experiment, wanted: Quantity) -> pd.DataFrame:
    """Estimate a quantity at every point, in display units: mean, low, high and n."""
    display, values = display_of(wanted), quantity(results, wanted)
    keys = [str(column) for column in values if column not in ("replicate", "value")]
    values = values.assign(value=values["value"] * display.factor)
    frame = over_replicates(values, keys, 0.0, display.highest)
    places = {}
    for factor in experiment.factors:
        places[factor.id] = {level.key: place for place, level in enumerate(factor.levels)}
    if factors := [key for key in keys if key in places]:
        frame = frame.sort_values(
            factors, kind="stable", key=lambda keys: keys.astype(str).map(places[str(keys.name)])
        )
    axis = axis_factor(experiment)
    frame = label_points(frame[frame["n"] > 0], experiment, axis)
    if axis is not None:
        frame = frame.sort_values("x", kind="stable", ignore_index=True)
    return frame.assign(unit=display.unit)


def over_replicates(
    frame: pd.DataFrame,
    by: Sequence[str],
    lowest: float = -math.inf,
    highest: float = math.inf,
    *,
    value: str = "value",
    sort: bool = False,
) -> pd.DataFrame:
    """Return mean, 95 % interval (low, high) and n of a column, one row for each group."""
    rows = []
    for key, group in frame.groupby(list(by), sort=sort, observed=True):
        estimated = estimate(group[value].to_numpy(dtype=float), lowest, highest)
        rows.append((*key, estimated.mean, estimated.low, estimated.high, estimated.n))
    return pd.DataFrame(rows, columns=[*by, "mean", "low", "high", "n"])


def runs_of(results: Results, experiment: Experiment) -> pd.DataFrame:
    """Return the runs of an experiment that have results, with a `label` of their levels."""
    rows = results.design
    rows = rows[(rows["experiment"] == experiment.id) & rows["supported"]]
    finished = results.flows[["scenario", "engine"]].drop_duplicates()
    labels = [labels_of(levels, experiment.factors) for levels in rows["levels"]]
    return rows.assign(label=labels).merge(finished, on=["scenario", "engine"])


def series_of(levels: Mapping[Any, Any], experiment: Experiment, axis: Factor | None) -> str:
    """Return the labels of the levels that are not on the axis, or the experiment's title."""
    varied = [factor for factor in experiment.factors if len(factor.levels) > 1]
    factors = [factor for factor in varied if factor is not axis]
    return labels_of(levels, factors) or experiment.title


def read_series(results: Results, runs: pd.DataFrame) -> pd.DataFrame:
    """Read the series of some runs without loading those of the whole study."""
    # Parquet cannot filter by an empty list, nor a column without values.
    wanted = sorted(set(runs["scenario"])) or [""]
    is_empty = pq.read_metadata(results.series_path).num_rows == 0
    filters = None if is_empty else [("scenario", "in", wanted)]
    table = read_parquet(results.series_path, filters=filters)
    frame: pd.DataFrame = table.to_pandas()
    frame = frame[frame["engine"].astype(str).isin(set(runs["engine"]))]
    frame["time_s"] = frame["time_s"].astype(float)
    return frame.reset_index(drop=True)


#: Names of congestion controls and queue disciplines by id.
_NAMES: dict[str, str] = read_yaml(Path(__file__).parents[1] / "names.yaml")
_NAME = re.compile(rf"\b({'|'.join(_NAMES)})\b")


def proper(label: str) -> str:
    """Replace the ids of congestion controls and queues in a label by their names."""
    return _NAME.sub(lambda match: _NAMES[match[0]], label)


def flow_algorithm(flow: Mapping[str, object]) -> str:
    """Return the name of a TCP flow's congestion control, or CBR."""
    return "CBR" if flow["kind"] == "cbr" else proper(str(flow["congestion_control"]))


def flow_label(flow: Mapping[str, object]) -> str:
    """Return a flow's id and algorithm, for a legend."""
    identifier = str(flow["id"])
    if flow["kind"] == "cbr":
        return identifier.upper() if identifier.lower() == "cbr" else f"{identifier} (CBR)"
    name = flow_algorithm(flow)
    return name if name.lower().endswith(identifier.lower()) else f"{identifier} ({name})"


def read_judged(data: Path, study: str, kind: str, setup: Setup = Setup.DEFAULTS) -> pd.DataFrame:
    """Read the judged "cells" or "claims" of a study under a set-up."""
    judged: pd.DataFrame = read_table(data / "evaluation" / study, kind).to_pandas()
    return judged[judged["setup"] == setup].reset_index(drop=True)


def cell_of(table: Table, column: str) -> Cell:
    """Return what a column of a published table measures."""
    return table.cell or (table.columns or {})[column]


def as_in_file(cells: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return cells in the order of the study's file, with what is `printed` in display units."""
    tables = {table.id: (place, table) for place, table in enumerate(study.tables)}
    if cells.empty:
        return cells
    places, printed = [], []
    for row in cells.to_dict("records"):
        place, table = tables[row["table"]]
        to_display = display_of(cell_of(table, row["column"])).factor
        values = row["published"], row["published_half_ulp"]
        printed.append(as_printed(*values, to_display, row["factor"]))
        places.append((place, *order_in(study, table)(row["row"], row["column"])))
    order = sorted(range(len(places)), key=places.__getitem__)
    return cells.assign(printed=printed).iloc[order]


def digits(value: float, half_ulp: float) -> str:
    """Return a number with the digits that were printed; `half_ulp` is half of the last one."""
    decimals = round(-math.log10(2 * half_ulp))
    # Results keep ten significant digits; more would be invented zeros.
    kept = 9 - math.floor(math.log10(abs(value))) if value else 12
    return f"{value:,.{max(0, min(decimals, kept))}f}".replace("-", "−")


def as_printed(value: float, half_ulp: float, to_display: float, factor: float) -> str:
    """Return a published value as printed, in display units, with the `factor` that is in it."""
    scale = to_display / factor
    text = digits(value * scale, half_ulp * scale) if half_ulp > 0 else figure(value * scale)
    return text if factor == 1 else f"{text} × {factor:g}"


def order_in(study: Study, table: Table) -> Callable[[str, str], tuple[int, int]]:
    """Return the function from row and column of a number to its place in the study's file."""

    def keys(named: Mapping[str, object] | None, factor: str | None) -> list[str]:
        levels = study.experiment(table.experiment).factor(factor).levels if factor else []
        return list(named or [level.key for level in levels])

    rows, columns = keys(table.rows, table.row_factor), keys(table.columns, table.column_factor)
    place_of_row = {key: place for place, key in enumerate(rows)}
    place_of_column = {key: place for place, key in enumerate(columns)}

    def place(row: str, column: str) -> tuple[int, int]:
        return place_of_row.get(row, len(rows)), place_of_column.get(column, len(columns))

    return place


class PublishedValue(NamedTuple):
    """A published value in display units and as printed, its table, row, column and quantity."""

    cell: tuple[str, str, str]
    value: float
    quantity: Quantity
    printed: str = ""


def published_values(experiment: Experiment, cells: pd.DataFrame) -> list[PublishedValue]:
    """Return the published values of an experiment, each once for all engines."""
    values: dict[tuple[str, str, str], PublishedValue] = {}
    for cell in cells.to_dict("records"):
        key = (cell["table"], cell["row"], cell["column"])
        if len(cell["quantities"]) and key not in values:
            wanted = Quantity.model_validate_json(cell["quantities"][0])
            value = cell["published"] * display_of(wanted).factor
            values[key] = PublishedValue(key, value, wanted, cell["printed"])
    return [value for value in values.values() if value.quantity.experiment == experiment.id]
