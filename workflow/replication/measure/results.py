"""The results of one study: its design, flows, series and scenarios, joined and checked.

A run is one row of the design: a point of an experiment, a replicate and an engine. Its flows and
series are found by scenario and engine, because points that are the same scenario are run once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.study.claim_model import Where
from replication.study.errors import InputError
from replication.study.files import read_json
from replication.study.storage.parquet import read_columns, read_parquet
from replication.study.storage.table import DESIGN_COLUMNS, FLOW_COLUMNS, SERIES_COLUMNS, read_frame

#: Columns of a design that concern how it is run, not what was run.
_UNUSED = ("study", "batch", "cost_s")
_SERIES_KEYS = ("scenario", "engine", "flow", "link")


class ResultsError(InputError):
    """A file of results is missing, damaged or does not fit the others."""


@dataclass(frozen=True)
class Results:
    """Everything that was run for one study; see the module's docstring.

    Attributes
    ----------
    study_id
        The study's id.
    design
        One row per run: experiment, point, levels (dict), replicate, engine, scenario,
        supported, reason.
    flows
        One row per scenario, engine and flow; units stand in the column names.
    scenarios
        Scenario id to the scenario's JSON document.
    series_path
        Parquet file of the sampled series, read when first needed.
    memo
        Quantities that were computed before: claims and cells ask for the same ones.
    """

    study_id: str
    design: pd.DataFrame
    flows: pd.DataFrame
    scenarios: Mapping[str, Mapping[str, Any]]
    series_path: Path
    memo: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def load(cls, data: Path, study_id: str) -> Results:
        """Load the results of one study.

        Parameters
        ----------
        data
            The folder that holds ``design`` and ``results`` (``data/reproduced``).
        study_id
            The study's id.

        Raises
        ------
        ResultsError
            A file is missing or damaged; the message names it and what to run.
        """
        folder = data / "results" / study_id
        return read_results(
            study_id,
            design=data / "design" / f"{study_id}.csv",
            scenarios=data / "design" / "scenarios" / f"{study_id}.json",
            flows=folder / "flows.parquet",
            series=folder / "series.parquet",
        )

    @property
    def engines(self) -> list[str]:
        """Engines of the design, sorted."""
        return sorted(self.design["engine"].unique())

    @cached_property
    def series(self) -> pd.DataFrame:
        """One row per scenario, engine, time and flow or monitored link."""
        return _read_series(self.series_path)

    def series_of(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Return the series of the given runs: scenario by scenario, engine by engine.

        Parameters
        ----------
        runs
            scenario, engine; every run once. Those without a series are passed over.

        Returns
        -------
        pandas.DataFrame
            The columns of the series; rows of one run stay in the order of the file.
        """
        rows, first_row = self._rows_of_runs
        wanted = runs.sort_values(["scenario", "engine"])
        pairs = zip(wanted["scenario"], wanted["engine"], strict=True)
        kept = [rows[first:end] for first, end in map(first_row.get, pairs, repeat((0, 0)))]
        return self.series.take(np.concatenate(kept) if kept else rows[:0])

    @cached_property
    def _rows_of_runs(self) -> tuple[npt.NDArray[np.intp], dict[tuple[str, str], tuple[int, int]]]:
        """The series' rows run by run, and the first and the end of each run's among them."""
        scenario, engine = (self.series[key].cat for key in ("scenario", "engine"))
        run = scenario.codes.to_numpy(dtype=np.int64) * len(engine.categories) + engine.codes
        rows = np.argsort(run, kind="stable")
        found, first, size = np.unique(run[rows], return_index=True, return_counts=True)
        names = (divmod(int(number), len(engine.categories)) for number in found)
        keys = [(scenario.categories[s], engine.categories[e]) for s, e in names]
        spans = zip(first.tolist(), (first + size).tolist(), strict=True)
        return rows, dict(zip(keys, spans, strict=True))

    def alone(self, replicate: int) -> Self:
        """Return a replicate's results as if there were no other, with what was computed of it."""

        def own(table: pd.DataFrame) -> pd.DataFrame:
            return table[table["replicate"] == replicate].assign(replicate=0)

        memo = {key: own(table) for key, table in self.memo.items()}
        return replace(self, design=own(self.design), memo=memo)

    @cached_property
    def segment_bytes(self) -> pd.DataFrame:
        """Segment size of each TCP flow: scenario, flow, segment_bytes."""
        rows = [
            (scenario, flow["id"], float(flow["segment_bytes"]))
            for scenario, document in self.scenarios.items()
            for flow in document["flows"]
            if "segment_bytes" in flow
        ]
        return pd.DataFrame(rows, columns=["scenario", "flow", "segment_bytes"])

    @cached_property
    def start_order(self) -> pd.DataFrame:
        """Place of each TCP flow in the order of starts, from 1: scenario, flow, place."""
        rows = [
            (scenario, flow["id"], place)
            for scenario, document in self.scenarios.items()
            for place, flow in enumerate(
                sorted(
                    (flow for flow in document["flows"] if flow["kind"] == "tcp"),
                    key=lambda flow: float(flow["start_s"]),
                ),
                start=1,
            )
        ]
        return pd.DataFrame(rows, columns=["scenario", "flow", "place"])

    def runs(self, experiment: str, where: Where) -> pd.DataFrame:
        """Return the runs of `experiment` at the levels of `where`.

        Parameters
        ----------
        experiment
            Its id.
        where
            Factor to keys of its levels; factors left out are free.

        Returns
        -------
        pandas.DataFrame
            engine, replicate, scenario, supported, reason, point and one column per factor.
        """
        rows = self.design[self.design["experiment"] == experiment]
        levels = pd.DataFrame(rows["levels"].tolist(), index=rows.index, dtype=object)
        runs = pd.concat(
            [rows[["engine", "replicate", "scenario", "supported", "reason", "point"]], levels],
            axis=1,
        )
        for factor, keys in where.items():
            if factor not in runs:
                return runs.iloc[:0]
            runs = runs[runs[factor].isin(keys)]
        return runs.reset_index(drop=True)


def read_results(
    study_id: str, *, design: Path, scenarios: Path, flows: Path, series: Path
) -> Results:
    """Load the results of one study from the named files; see `Results.load`."""
    documents = _read_scenarios(scenarios)
    runs = _read_design(design)
    supported = runs.loc[runs["supported"], "scenario"]
    unknown = sorted(set(supported) - documents.keys())
    if unknown:
        raise ResultsError(
            f"{scenarios}: scenario {unknown[0]} of {design} is not in it; run `make report`"
        )
    # A table without rows does not know that its keys are text.
    table = _read_parquet(flows, FLOW_COLUMNS).astype(dict.fromkeys(FLOW_COLUMNS[:4], str))
    twice = table.duplicated(["scenario", "engine", "flow"])
    if twice.any():
        row = table[twice].iloc[0]
        raise ResultsError(
            f"{flows}: flow {row['flow']} of scenario {row['scenario']} on {row['engine']} is "
            "there twice; delete the file and simulate again"
        )
    if not series.is_file():
        raise _missing(series)
    return Results(study_id, runs, table, documents, series)


def _missing(path: Path) -> ResultsError:
    return ResultsError(f"{path}: no such file; run the workflow up to the simulate stage first")


def _read_design(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise ResultsError(f"{path}: no such file; run the workflow up to the design stage first")
    table = read_frame(path, dtype=str, keep_default_na=False)
    _check_columns(path, table.columns, DESIGN_COLUMNS)
    table = table[[name for name in DESIGN_COLUMNS if name not in _UNUSED]].copy()
    try:
        table["levels"] = pd.Series(
            [_levels(text) for text in table["levels"]], index=table.index, dtype=object
        )
        table["replicate"] = table["replicate"].astype(int)
        table["supported"] = [_truth(text) for text in table["supported"]]
    except ValueError as error:
        raise ResultsError(f"{path}: {error}; design it again") from None
    return table.astype({"supported": bool})


def _levels(text: str) -> dict[str, str]:
    try:
        levels = json.loads(text)
    except json.JSONDecodeError:
        levels = None
    if not isinstance(levels, dict):
        raise ValueError(f"levels {text!r} is not a JSON object")
    return {str(factor): str(key) for factor, key in levels.items()}


def _truth(text: str) -> bool:
    truths = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in truths:
        raise ValueError(f"supported {text!r} is neither true nor false")
    return truths[text.lower()]


def _read_scenarios(path: Path) -> dict[str, dict[str, Any]]:
    if not path.is_file():
        raise ResultsError(f"{path}: no such file; run the workflow up to the design stage first")
    documents = read_json(path)
    if not isinstance(documents, dict):
        raise ResultsError(f"{path}: must map scenario ids to scenarios; design it again")
    return documents


def _read_parquet(path: Path, columns: Sequence[str], keys: Sequence[str] = ()) -> pd.DataFrame:
    if not path.is_file():
        raise _missing(path)
    _check_columns(path, read_columns(path), columns)
    table = read_parquet(path, columns=list(columns), read_dictionary=list(keys))
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _read_series(path: Path) -> pd.DataFrame:
    return with_categories(_read_parquet(path, SERIES_COLUMNS, _SERIES_KEYS))


def with_categories(series: pd.DataFrame) -> pd.DataFrame:
    """Return a series whose scenario, engine, flow and link are categories in order of name."""
    categories = {key: series[key].astype("category").cat for key in _SERIES_KEYS}
    return series.assign(
        **{key: c.reorder_categories(sorted(c.categories)) for key, c in categories.items()}
    )


def _check_columns(path: Path, have: Sequence[str] | pd.Index, need: Sequence[str]) -> None:
    absent = [name for name in need if name not in set(have)]
    if absent:
        raise ResultsError(
            f"{path}: has no column {', '.join(absent)}; it was made by another version - "
            "delete it and run the workflow again"
        )
