"""The results of one study: its design, flows, features and scenarios, joined and checked.

A run is one row of the design: a point of an experiment, a replicate and an engine. Its flows and
features are found by scenario and engine, because points with the same scenario are run once.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import pandas as pd

from replication.base.errors import InputError
from replication.base.files import read_json
from replication.base.table import (
    DESIGN_COLUMNS,
    FEATURE_COLUMNS,
    FLOW_COLUMNS,
    read_design,
    read_parquet,
)
from replication.study.claim_model import Where
from replication.study.setup import Setup

#: Columns of a design that only concern how it is run.
_UNUSED = ("study", "batch", "cost_s")
#: A feature's subject is a flow, a link or a set of flows of a run.
SUBJECT = ["scenario", "engine", "subject"]

#: A part (from, to] of a run in s; None for all of it.
Window = tuple[float, float] | None


def window_name(window_s: Window) -> str:
    """Return a window as features.parquet names it; empty for the whole run."""
    return "" if window_s is None else "-".join(f"{end:.12g}" for end in window_s)


@dataclass(frozen=True)
class Results:
    """Everything that was run for one study under one set-up.

    `design` has a row for each run: experiment, point, levels (dict), replicate, engine, setup,
    scenario, supported, reason; `flows` one for each scenario, engine and flow. `scenarios` are
    JSON documents by id. The Parquet files have features, and the series that charts draw. `memo`
    caches quantities and runs, which claims and cells share.
    """

    study_id: str
    design: pd.DataFrame
    flows: pd.DataFrame
    scenarios: Mapping[str, Mapping[str, Any]]
    features_path: Path = Path()
    series_path: Path = Path()
    memo: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False, compare=False)
    setup: Setup = Setup.DEFAULTS

    @classmethod
    def load(cls, data: Path, study_id: str, setup: Setup = Setup.DEFAULTS) -> Self:
        """Load a study's results under a set-up; InputError names what is missing or damaged."""
        folder = data / "results" / study_id
        described = data / "design" / "scenarios" / f"{study_id}.json"
        scenarios = read_json(described)
        runs = _read_design(data, study_id)
        unknown = sorted(set(runs.loc[runs["supported"], "scenario"]) - scenarios.keys())
        if unknown:
            raise InputError(f"{described}: has no scenario {unknown[0]}; run `make report`")
        flows = _read_flows(folder / "flows.parquet")
        runs = runs[runs["setup"] == setup].reset_index(drop=True)
        flows = flows[flows["scenario"].isin(runs["scenario"])].reset_index(drop=True)
        return cls(
            study_id,
            runs,
            flows,
            {name: scenarios[name] for name in runs["scenario"] if name in scenarios},
            features_path=folder / "features.parquet",
            series_path=folder / "series.parquet",
            setup=setup,
        )

    @classmethod
    def load_each(cls, data: Path, study_id: str) -> list[Self]:
        """Load a study's results under each set-up of its design, the defaults first."""
        designed = set(_read_design(data, study_id)["setup"])
        return [cls.load(data, study_id, setup) for setup in Setup if setup in designed]

    @property
    def engines(self) -> list[str]:
        """Engines of the design, sorted."""
        return sorted(self.design["engine"].unique())

    def values(self, metric: str, window_s: Window, subjects: pd.DataFrame) -> pd.DataFrame:
        """Return scenario, engine, subject and value of a metric, sorted; NaN if undefined.

        `subjects` has scenario, engine, subject and, for a set of flows, a row for each `flow`.
        InputError: the metric was not computed when these results were collected.
        """
        wanted = subjects[SUBJECT].drop_duplicates()
        window = window_name(window_s)
        none = wanted.iloc[:0].assign(value=0.0)
        values = wanted.merge(self._by_feature.get((metric, window), none))
        if len(values) < len(wanted):
            raise InputError(
                f"{self.features_path}: has no {metric} of every run of {self.study_id}"
                f"{f' in {window} s' if window else ''}; results have what a claim, table, finding "
                "or chart (DRAWN in metrics/metric_model.py) named when they were collected: name "
                "it in one of these if none does, and run `make report`"
            )
        return values.sort_values(SUBJECT, ignore_index=True)

    @cached_property
    def _by_feature(self) -> dict[tuple[str, str], pd.DataFrame]:
        table = read_parquet(self.features_path, columns=list(FEATURE_COLUMNS)).to_pandas()
        features = {}
        for (metric, window), part in table.groupby(["metric", "window"], sort=False):
            features[str(metric), str(window)] = part[[*SUBJECT, "value"]]
        return features

    def single_replicate(self, replicate: int) -> Self:
        """Return the results of one replicate, with its cached quantities."""

        def of_replicate(table: pd.DataFrame) -> pd.DataFrame:
            return table[table["replicate"] == replicate].assign(replicate=0)

        memo = {key: of_replicate(table) for key, table in self.memo.items()}
        return replace(self, design=of_replicate(self.design), memo=memo)

    @cached_property
    def scenario_flows(self) -> pd.DataFrame:
        """Scenario, flow, segment, most, place and transfer of each flow of each scenario.

        `segment` and `most`, the largest window, are in bytes; `place` is a TCP flow's rank by
        start, from 1; `transfer` is whether the flow ends after a number of bytes.
        """
        rows = []
        for scenario, document in self.scenarios.items():
            tcp = [flow for flow in document["flows"] if flow["kind"] == "tcp"]
            tcp.sort(key=lambda flow: float(flow["start_s"]))
            places = {flow["id"]: place for place, flow in enumerate(tcp, start=1)}
            for flow in document["flows"]:
                segment = float(flow.get("segment_bytes", math.nan))
                most = float(flow.get("maximum_window_bytes") or math.inf)
                place = places.get(flow["id"], 0)
                transfer = bool(flow.get("stop_after_bytes"))
                rows.append((scenario, flow["id"], segment, most, place, transfer))
        names = ["scenario", "flow", "segment", "most", "place", "transfer"]
        return pd.DataFrame(rows, columns=names)

    def runs(self, experiment: str, where: Where, engine: str | None = None) -> pd.DataFrame:
        """Return the runs of `experiment` at the levels of `where`, on `engine` or on all.

        Columns: engine, replicate, scenario, supported, reason, point and one for each factor.
        """
        key = f"runs of {experiment} {json.dumps(where, sort_keys=True)}"
        if key not in self.memo:
            self.memo[key] = self._runs(experiment, where)
        runs = self.memo[key]
        return runs.copy() if engine is None else runs[runs["engine"] == engine]

    def _runs(self, experiment: str, where: Where) -> pd.DataFrame:
        rows = self.design[self.design["experiment"] == experiment]
        levels = pd.DataFrame(rows["levels"].tolist(), index=rows.index, dtype=object)
        columns = ["engine", "replicate", "scenario", "supported", "reason", "point"]
        runs = pd.concat([rows[columns], levels], axis=1)
        for factor, keys in where.items():
            if factor not in runs:
                return runs.iloc[:0]
            runs = runs[runs[factor].isin(keys)]
        return runs.reset_index(drop=True)


def _read_design(data: Path, study: str) -> pd.DataFrame:
    rows = read_design(data, study)
    table = pd.DataFrame(rows, columns=list(DESIGN_COLUMNS), dtype=object)
    return table.drop(columns=list(_UNUSED)).assign(
        levels=table["levels"].map(json.loads),
        replicate=table["replicate"].astype(int),
        supported=table["supported"].isin(["True", "true"]),
    )


def _read_flows(path: Path) -> pd.DataFrame:
    # Without rows the keys would not be text.
    read: pd.DataFrame = read_parquet(path).to_pandas()
    table = read.reindex(columns=list(FLOW_COLUMNS)).astype(dict.fromkeys(FLOW_COLUMNS[:4], str))
    for flow in table.loc[table.duplicated(["scenario", "engine", "flow"]), "flow"]:
        raise InputError(f"{path}: flow {flow} occurs twice; delete the file and simulate again")
    return table
