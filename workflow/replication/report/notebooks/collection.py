"""The collection for notebooks: studies, results and verdicts as tidy data frames.

The levels of a study's factors are columns. If all levels are numbers, the column has numbers and
the unit in its name (`delay_ms`), otherwise ordered labels.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pandas as pd
from IPython.display import Markdown
from pydantic import ValidationError

from replication.base.errors import InputError, RunError, describe
from replication.base.table import read_frame, read_parquet
from replication.design.config import load_study_of, study_ids
from replication.metrics.results import Results
from replication.report.charts import data as report_data
from replication.report.manifest import RELEASED
from replication.report.notebooks import session
from replication.report.notebooks.live import LiveRun, can_run, flow_facts, run_live
from replication.report.notebooks.names import check_name, find_project
from replication.report.notebooks.picture import NOT_CONCLUDED
from replication.report.pages.assumptions import plausible
from replication.study.parameter import Factor
from replication.study.scenario import Scenario
from replication.study.setup import Setup
from replication.study.study import Experiment, ExperimentType, Study
from replication.study.variation import parameters
from replication.verdicts.self_consistency import SELF_CONSISTENCY
from replication.verdicts.verdict_table import primary_engines

if TYPE_CHECKING:
    # They import what fits surfaces, which most notebooks do not need.
    from replication.report.notebooks.region_data import RegionData

_UNITS = {"Mbit/s": "mbps", "bit/s": "bps", "KB (as printed)": "kb"}


@dataclass(frozen=True)
class Collection:
    """The studies of the project in `root`, and a folder of results."""

    root: Path
    data: Path
    is_release: bool = False

    def conclude(self, *conclusions: tuple[bool, str]) -> Markdown:
        """Return the conclusions whose condition holds; RunError if the release fails one."""
        lines = []
        for place, (holds, sentence) in enumerate(conclusions, start=1):
            if not holds and self.is_release:
                raise RunError(f"the release no longer supports this conclusion: {sentence}")
            lines.append(f"{place}. {sentence if holds else NOT_CONCLUDED}")
        return Markdown("\n".join(lines) or NOT_CONCLUDED)

    @property
    def studies(self) -> list[str]:
        """The ids of the studies that these results have."""
        return sorted(path.stem for path in (self.data / "design").glob("*.csv"))

    def study(self, study: str) -> Study:
        """Return a study: paper, experiments, parameters, claims."""
        self._check(study)
        return load_study_of(self.root, self.data, study)

    def _check(self, study: str) -> None:
        check_name("study", study, study_ids(self.root), "`replication.studies`")

    def experiment(self, study: str, experiment: str) -> Experiment:
        """Return an experiment of a study."""
        return session.experiment_of(self.study(study), experiment)

    def parameters(self, study: str) -> pd.DataFrame:
        """Return what `design` can change: values, units, and ranges where the paper states none.

        A parameter without `experiment` is one of all experiments.
        """
        rows = []
        for key, parameter in parameters(self.study(study)):
            *experiment, name = key.split("/")
            tag = parameter.assumed or parameter.published
            rows.append(
                {
                    "parameter": name,
                    "experiment": experiment[0] if experiment else "",
                    "value": parameter.value,
                    "unit": parameter.unit,
                    "plausible": plausible(parameter.assumed) if parameter.assumed else "",
                    "stated": parameter.published is not None,
                    "why": " ".join(getattr(tag, "reason", getattr(tag, "place", "")).split()),
                }
            )
        return pd.DataFrame(rows)

    def levels(self, study: str) -> pd.DataFrame:
        """Return the levels of each factor by `level`, its key, and the parameters that it sets."""
        names = ["experiment", "factor", "level", "label", "value", "unit", "sets"]
        rows = []
        for experiment in self.study(study).experiments:
            for factor in experiment.factors:
                for level in factor.levels:
                    texts = (experiment.id, factor.id, level.key, level.label)
                    rows.append((*texts, level.value, factor.unit, level.set))
        return pd.DataFrame(rows, columns=names)

    def engine(self, study: str) -> str:
        """Return the primary engine of a study: that of the paper if it ran, else ns3."""
        self._check(study)
        return primary_engines(self.root, self.data, [study])[study]

    def flows(self, study: str) -> pd.DataFrame:
        """Return one row for each flow of each run: factors, replicate, engine, measurements."""
        experiments = self.study(study).experiments
        results = Results.load(self.data, study)
        runs = [_runs(results, experiment) for experiment in experiments]
        flows = pd.concat(runs, ignore_index=True).merge(results.flows, on=["scenario", "engine"])
        return _ordered(flows.merge(flow_facts(results.scenarios), how="left"), experiments)

    def series(self, study: str, experiment: str, replicate: int | None = None) -> pd.DataFrame:
        """Return the samples over time of an experiment's runs, for one replicate or all."""
        results = Results.load(self.data, study)
        document = self.experiment(study, experiment)
        runs = _runs(results, document)
        if replicate is not None:
            runs = runs[runs["replicate"] == replicate]
        series = runs.merge(report_data.read_series(results, runs), on=["scenario", "engine"])
        return _ordered(series.merge(flow_facts(results.scenarios), how="left"), [document])

    def cells(self, study: str, experiment: str | None = None) -> pd.DataFrame:
        """Return published and measured means with their factors' levels, in SI units."""
        document = self.study(study)
        if experiment is not None:
            session.experiment_of(document, experiment)
        cells = self._judged(study, "cells", ["table", "row", "column"])
        cells = cells[cells["quantities"].map(len) > 0]
        if cells.empty:
            return cells.assign(experiment=None)
        experiments = {e.id: e for e in document.experiments}
        facts = []
        for text in cells["quantities"].str[0]:
            quantity = json.loads(text)
            owner = quantity["experiment"]
            # Several levels are a list, which is no level's key.
            levels = _levels(experiments[owner], quantity.get("where", {}))
            facts.append({"experiment": owner, "metric": quantity["metric"]} | levels)
        rows = pd.concat([cells.reset_index(drop=True), pd.DataFrame(facts)], axis=1)
        if experiment is not None:
            rows = rows[rows["experiment"] == experiment].reset_index(drop=True)
        return _ordered(rows.dropna(axis=1, how="all"), document.experiments)

    def claims(self, study: str, kind: str | None = None) -> pd.DataFrame:
        """Return claims with their verdicts on each engine, for one type of experiment or all."""
        document = self.study(study)
        claims = self._judged(study, "claims", ["claim"])
        said = read_frame(self.data / "evaluation" / study / SELF_CONSISTENCY)
        claims = claims.merge(said[["claim", "result"]], on="claim", how="left")
        if kind is None:
            return claims
        check_name("type of experiment", kind, get_args(ExperimentType))
        experiments = {e.id for e in document.experiments if e.type == kind}
        of_kind = []
        for claim in document.claims:
            if any(quantity.experiment in experiments for quantity in claim.quantities()):
                of_kind.append(claim.id)
        return claims[claims["claim"].isin(of_kind)].reset_index(drop=True)

    def _judged(self, study: str, kind: str, item: list[str]) -> pd.DataFrame:
        """Return the rows at the defaults, with the textbook verdict in `textbook` if it ran."""
        rows = report_data.read_judged(self.data, study, kind)
        textbook = report_data.read_judged(self.data, study, kind, Setup.TEXTBOOK)
        if textbook.empty:
            return rows
        keys = [*item, "engine"]
        verdicts = textbook[[*keys, "verdict"]].rename(columns={"verdict": "textbook"})
        return rows.merge(verdicts, on=keys, how="left")

    def table(self, name: str) -> pd.DataFrame:
        """Return a CSV or Parquet table of the results by its path below their folder."""
        path = self.data / name
        is_csv = path.suffix == ".csv"
        table: pd.DataFrame = read_frame(path) if is_csv else read_parquet(path).to_pandas()
        return table

    def is_current(self, study: str) -> bool:
        """Return whether a study's sensitivity results match the files they were made from."""
        from replication.explore.robustness import is_current

        self._check(study)
        return is_current(self.root, self.data, study)

    @property
    def regions(self) -> pd.DataFrame:
        """One row for each region and engine; `current`: it matches the files it was made from."""
        from replication.report.notebooks.region_data import region_table

        return region_table(self.root, self.data)

    def region(self, name: str, engine: str) -> RegionData:
        """Return a region on an engine; InputError if it is missing."""
        from replication.report.notebooks.region_data import read_region

        return read_region(self.data, name, engine)

    @property
    def law_runs(self) -> str:
        """What data/bbr_shares.csv shows, in words; empty without it."""
        from replication.report.pages.region_words import law_runs

        runs = law_runs(self.root)
        return runs.words if runs else ""

    def at(self, region: RegionData, x: float, y: float) -> list[Scenario]:
        """Return the scenarios of any point in a region's first panel, to be run."""
        from replication.report.notebooks.region_data import scenarios_at

        return scenarios_at(self.root, self.study(region.result.study), region, x, y)

    def scenario(self, study: str, experiment: str) -> Mapping[str, Any]:
        """Return the scenario of an experiment's first run as a JSON document."""
        results = Results.load(self.data, study)
        runs = results.runs(self.experiment(study, experiment).id, {})
        return results.scenarios[str(runs["scenario"].iloc[0])]

    def points(self, study: str, experiment: str) -> Iterator[tuple[str, str, Scenario]]:
        """Yield levels, engine and scenario of the first replicate of each point that was run."""
        results = Results.load(self.data, study)
        known = self.experiment(study, experiment).id
        runs = results.design[results.design["experiment"] == known]
        first = runs[runs["supported"] & (runs["replicate"] == 0)]
        for row in first.to_dict("records"):
            scenario = Scenario.model_validate(results.scenarios[row["scenario"]])
            yield ", ".join(row["levels"].values()), row["engine"], scenario

    def design(
        self, study: str, experiment: str, levels: Mapping[str, str], **parameters: Any
    ) -> Scenario:
        """Design one scenario of a study, given by its id, as `session.design` does."""
        return session.design(self.study(study), experiment, levels, **parameters)

    def is_built(self, engine: str) -> bool:
        """Return whether `simulate` can run an engine on this machine."""
        return can_run(self.root, engine)

    def simulate(self, scenario: Scenario | Mapping[str, Any], engine: str = "ns3") -> LiveRun:
        """Run a scenario on this machine; the same scenario gives the same numbers everywhere.

        InputError: the engine is not built or refuses it; RunError: the run failed.
        """
        return run_live(self.root, scenario, engine)


def _runs(results: Results, experiment: Experiment) -> pd.DataFrame:
    """Return the runs of an experiment that an engine supports, with their levels."""
    design = results.design
    rows = design[(design["experiment"] == experiment.id) & design["supported"]]
    runs = rows[["experiment", "engine", "replicate", "scenario"]].reset_index(drop=True)
    runs["experiment"] = experiment.id
    levels = pd.DataFrame([_levels(experiment, keys) for keys in rows["levels"]])
    return pd.concat([runs, levels], axis=1)


def read_study(document: Mapping[str, Any]) -> Study:
    """Return a study from its parsed YAML; InputError names a wrong field."""
    try:
        return Study.model_validate(document)
    except ValidationError as error:
        raise InputError(describe(error)) from None


def open_collection(data: str, root: str) -> Collection:
    """Open a project's collection on a folder of results, relative to the project's folder.

    Without `root`, the project's folder is that of `find_project`. InputError: there is no project,
    or no such folder.
    """
    project = find_project(root)
    folder = project / data
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; run `make report` first, or set `data`")
    if data != str(RELEASED):
        return Collection(project, folder)
    # The release leaves out what follows from it, so notebooks read the restored folder.
    from replication.report.release import released_results

    return Collection(project, released_results(project), is_release=True)


def column_of(factor: Factor) -> str:
    """Return the name of the column of a factor's levels, with the unit if they are numbers."""
    if not report_data.is_numeric(factor) or factor.unit in ("1", factor.id, "flows"):
        return factor.id
    unit = _UNITS.get(factor.unit, re.sub(r"\W+", "_", factor.unit.lower()).strip("_"))
    return f"{factor.id}_{unit}"


def _levels(experiment: Experiment, keys: Mapping[Any, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for factor in experiment.factors:
        is_numeric = report_data.is_numeric(factor)
        for level in factor.levels:
            if level.key == keys.get(factor.id):
                values[column_of(factor)] = level.value if is_numeric else level.label
    return values


def _ordered(frame: pd.DataFrame, experiments: list[Experiment]) -> pd.DataFrame:
    """Make labels ordered categories, in the order of the study."""
    labels: dict[str, dict[str, None]] = {}
    for experiment in experiments:
        for factor in experiment.factors:
            if not report_data.is_numeric(factor):
                known = labels.setdefault(column_of(factor), {})
                known |= dict.fromkeys(level.label for level in factor.levels)
    for name in labels.keys() & set(frame.columns):
        frame[name] = pd.Categorical(frame[name], list(labels[name]), ordered=True)
    return frame
