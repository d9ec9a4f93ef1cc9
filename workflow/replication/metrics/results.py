"""The results of one study: its design, flows, features and scenarios, joined and checked.

A run is one row of the design: a point of an experiment, a replicate and an engine. Its flows and
features are found by scenario and engine, because points that are the same scenario are run once.
Features are what was read off the series when they were collected (`metrics.sampled`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import pandas as pd

from replication.study.claim_model import Where
from replication.study.errors import InputError
from replication.study.files import read_json
from replication.study.storage.table import (
    DESIGN_COLUMNS,
    FEATURE_COLUMNS,
    FLOW_COLUMNS,
    read_parquet,
    read_rows,
)

#: Columns of a design that concern how it is run, not what was run.
_UNUSED = ("study", "batch", "cost_s")
#: What a feature is of: a flow, a link or a set of flows of a run.
SUBJECT = ["scenario", "engine", "subject"]


@dataclass(frozen=True)
class Feature:
    """A metric, or `SHARE_AT_WINDOW`, read off a run's series, in (from, to] or all of it."""

    metric: str
    window_s: tuple[float, float] | None = None

    @property
    def window(self) -> str:
        """The window as features.parquet has it; empty for the whole run."""
        return "" if self.window_s is None else "-".join(f"{end:.12g}" for end in self.window_s)


@dataclass(frozen=True)
class Results:
    """Everything that was run for one study; see the module's docstring.

    `design` has a row per run: experiment, point, levels (dict), replicate, engine, scenario,
    supported, reason; `flows` one per scenario, engine and flow. `scenarios` are JSON documents by
    id. The Parquet files have what was read off the series, and the series that charts draw.
    `memo` keeps quantities: claims and cells ask for the same ones.
    """

    study_id: str
    design: pd.DataFrame
    flows: pd.DataFrame
    scenarios: Mapping[str, Mapping[str, Any]]
    features_path: Path = Path()
    series_path: Path = Path()
    memo: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def load(cls, data: Path, study_id: str) -> Results:
        """Load a study's results from `data`; InputError names what is missing or damaged."""
        folder = data / "results" / study_id
        described = data / "design" / "scenarios" / f"{study_id}.json"
        scenarios, runs = read_json(described), _read_design(data / "design" / f"{study_id}.csv")
        unknown = sorted(set(runs.loc[runs["supported"], "scenario"]) - scenarios.keys())
        if unknown:
            raise InputError(f"{described}: has no scenario {unknown[0]}; run `make report`")
        return cls(
            study_id,
            runs,
            _read_flows(folder / "flows.parquet"),
            scenarios,
            folder / "features.parquet",
            folder / "series.parquet",
        )

    @property
    def engines(self) -> list[str]:
        """Engines of the design, sorted."""
        return sorted(self.design["engine"].unique())

    def values(self, feature: Feature, subjects: pd.DataFrame) -> pd.DataFrame:
        """Return scenario, engine, subject and value of a feature, in this order; NaN if undefined.

        `subjects` has scenario, engine, subject and, for a set of flows, each `flow` in a row.
        InputError where the feature was not computed when these results were collected.
        """
        wanted = subjects[SUBJECT].drop_duplicates()
        none = wanted.iloc[:0].assign(value=0.0)
        found = wanted.merge(self._by_feature.get((feature.metric, feature.window), none))
        if len(found) < len(wanted):
            raise InputError(
                f"{self.features_path}: has no {feature.metric} of every run of {self.study_id}"
                f"{f' in {feature.window} s' if feature.window else ''}; the study has changed "
                "since its results were collected: run `make report`"
            )
        return found.sort_values(SUBJECT, ignore_index=True)

    @cached_property
    def _by_feature(self) -> dict[tuple[str, str], pd.DataFrame]:
        table = _read_table(self.features_path, FEATURE_COLUMNS)
        return {
            (str(key[0]), str(key[1])): part[[*SUBJECT, "value"]]
            for key, part in table.groupby(["metric", "window"], sort=False)
        }

    def alone(self, replicate: int) -> Self:
        """Return a replicate's results as if there were no other, with what was computed of it."""

        def own(table: pd.DataFrame) -> pd.DataFrame:
            return table[table["replicate"] == replicate].assign(replicate=0)

        memo = {key: own(table) for key, table in self.memo.items()}
        return replace(self, design=own(self.design), memo=memo)

    @cached_property
    def segments(self) -> pd.DataFrame:
        """Segment and largest window of each TCP flow: scenario, flow, segment, most; in bytes."""
        rows = []
        for scenario, document in self.scenarios.items():
            for flow in document["flows"]:
                if "segment_bytes" in flow:
                    most = float(flow.get("maximum_window_bytes") or math.inf)
                    rows.append((scenario, flow["id"], float(flow["segment_bytes"]), most))
        return pd.DataFrame(rows, columns=["scenario", "flow", "segment", "most"])

    @cached_property
    def start_order(self) -> pd.DataFrame:
        """Place of each TCP flow in the order of starts, from 1: scenario, flow, place."""
        rows = []
        for scenario, document in self.scenarios.items():
            tcp = [flow for flow in document["flows"] if flow["kind"] == "tcp"]
            tcp.sort(key=lambda flow: float(flow["start_s"]))
            rows += [(scenario, flow["id"], place) for place, flow in enumerate(tcp, start=1)]
        return pd.DataFrame(rows, columns=["scenario", "flow", "place"])

    @cached_property
    def transfers(self) -> pd.DataFrame:
        """Flows that end after so many bytes: scenario, flow."""
        rows = [
            (scenario, flow["id"])
            for scenario, document in self.scenarios.items()
            for flow in document["flows"]
            if flow.get("stop_after_bytes")
        ]
        return pd.DataFrame(rows, columns=["scenario", "flow"])

    def runs(self, experiment: str, where: Where) -> pd.DataFrame:
        """Return the runs of `experiment` at the levels of `where`.

        Columns: engine, replicate, scenario, supported, reason, point and one per factor.
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


def _read_design(path: Path) -> pd.DataFrame:
    table = pd.DataFrame(
        read_rows(path, DESIGN_COLUMNS), columns=list(DESIGN_COLUMNS), dtype=object
    )
    return table.drop(columns=list(_UNUSED)).assign(
        levels=table["levels"].map(json.loads),
        replicate=table["replicate"].astype(int),
        supported=table["supported"].isin(["True", "true"]),
    )


def _read_flows(path: Path) -> pd.DataFrame:
    # A table without rows does not know that its keys are text.
    read: pd.DataFrame = read_parquet(path).to_pandas()
    table = read.reindex(columns=list(FLOW_COLUMNS)).astype(dict.fromkeys(FLOW_COLUMNS[:4], str))
    twice = table.duplicated(["scenario", "engine", "flow"])
    if twice.any():
        row = table[twice].iloc[0]
        raise InputError(
            f"{path}: flow {row['flow']} of scenario {row['scenario']} on {row['engine']} is "
            "there twice; delete the file and simulate again"
        )
    return table


def _read_table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    table: pd.DataFrame = read_parquet(path, columns=list(columns)).to_pandas()
    return table
