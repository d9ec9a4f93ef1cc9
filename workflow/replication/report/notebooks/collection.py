"""The collection for notebooks: studies, results and verdicts as tidy data frames.

The levels of a study's factors are columns. If all levels are numbers, the column has numbers and
the unit in its name (`delay_ms`), otherwise ordered labels.
"""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from IPython.display import Markdown
from pydantic import ValidationError

from replication.design.config import STUDIES, load_study_of, study_ids
from replication.design.single_run import is_built, run_single
from replication.explore.regions.border import range_of
from replication.explore.regions.region_model import load_region
from replication.explore.regions.region_result import is_current as region_is_current
from replication.explore.regions.region_result import region_results
from replication.explore.regions.space import Point, Space
from replication.explore.regions.surface import middles
from replication.explore.robustness import is_current
from replication.metrics.results import Results
from replication.report.charts import data as report_data
from replication.report.manifest import RELEASED
from replication.report.notebooks import session
from replication.report.notebooks.picture import NOT_CONCLUDED
from replication.report.pages.region_words import away, border_sentences, law_runs, scale_words
from replication.report.pages.regions import panel_title
from replication.report.release import released_results
from replication.study.errors import InputError, RunError, describe
from replication.study.parameter import Factor
from replication.study.scenario import Scenario
from replication.study.setup import Setup
from replication.study.study import Experiment, Study
from replication.study.table import read_frame, read_parquet
from replication.verdicts.self_consistency import SELF_CONSISTENCY
from replication.verdicts.verdict_table import primary_engines

_UNITS = {"Mbit/s": "mbps", "bit/s": "bps", "KB (as printed)": "kb"}
#: The folder of results that has the built engines, whichever results a notebook reads.
_BUILT = Path("data/reproduced")
#: Significant digits that keep a number exact.
_EXACT = 17


class RegionData(NamedTuple):
    """A region on an engine; `document` has the claim, its test, axes, surfaces and runs.

    Each table has a column `panel` and one for each axis. In `validation`, `covered` says whether
    the mean of a point's runs is inside the predicted 90 % interval, `deviations` how many standard
    deviations away it is. `surface` has the middle of each cell. `borders` has, for each panel,
    where the claim holds in sentences; `away` says how far outside the paper's own point lies, and
    `scale` how the area is measured.
    """

    document: Mapping[str, Any]
    axes: Sequence[Mapping[str, Any]]
    runs: pd.DataFrame
    validation: pd.DataFrame
    surface: pd.DataFrame
    borders: Mapping[str, Sequence[str]]
    away: str
    scale: str


class LiveRun(NamedTuple):
    """Tables of one run, as of `Collection.flows` and `.series` without factors."""

    flows: pd.DataFrame
    series: pd.DataFrame


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
        """The ids of all studies."""
        return study_ids(self.root)

    def study(self, study: str) -> Study:
        """Return a study: paper, experiments, parameters, claims."""
        return load_study_of(self.root, self.data, study)

    def experiment(self, study: str, experiment: str) -> Experiment:
        """Return an experiment of a study."""
        return self.study(study).experiment(experiment)

    def engine(self, study: str) -> str:
        """Return the primary engine of a study: that of the paper if it ran, else ns3."""
        return primary_engines(self.root, self.data, [study])[study]

    def flows(self, study: str) -> pd.DataFrame:
        """Return one row for each flow of each run: factors, replicate, engine, measurements."""
        results, experiments = Results.load(self.data, study), self.study(study).experiments
        runs = pd.concat([_runs(results, one) for one in experiments], ignore_index=True)
        flows = runs.merge(results.flows, on=["scenario", "engine"])
        return _ordered(flows.merge(_flow_facts(results.scenarios), how="left"), experiments)

    def series(self, study: str, experiment: str, replicate: int | None = None) -> pd.DataFrame:
        """Return the samples over time of an experiment's runs, for one replicate or all."""
        results, found = Results.load(self.data, study), self.experiment(study, experiment)
        runs = _runs(results, found)
        if replicate is not None:
            runs = runs[runs["replicate"] == replicate]
        series = runs.merge(report_data.read_series(results, runs), on=["scenario", "engine"])
        return _ordered(series.merge(_flow_facts(results.scenarios), how="left"), [found])

    def cells(self, study: str, experiment: str | None = None) -> pd.DataFrame:
        """Return published and measured means with their factors' levels, in SI units."""
        cells = self._judged(study, "cells", ["table", "row", "column"])
        cells = cells[cells["quantities"].map(len) > 0]
        if cells.empty:
            return cells.assign(experiment=None)
        experiments = {e.id: e for e in self.study(study).experiments}
        facts = []
        for quantity in map(json.loads, cells["quantities"].str[0]):
            owner, named = experiments[quantity["experiment"]], {"metric": quantity["metric"]}
            # Several levels are a list, which is no level's key.
            facts.append(
                {"experiment": owner.id} | named | _levels(owner, quantity.get("where", {}))
            )
        found = pd.concat([cells.reset_index(drop=True), pd.DataFrame(facts)], axis=1)
        if experiment is not None:
            found = found[found["experiment"] == experiment].reset_index(drop=True)
        return _ordered(found.dropna(axis=1, how="all"), list(experiments.values()))

    def claims(self, study: str, kind: str | None = None) -> pd.DataFrame:
        """Return claims with their verdicts on each engine, for one type of experiment or all."""
        claims = self._judged(study, "claims", ["claim"])
        said = read_frame(self.data / "evaluation" / study / SELF_CONSISTENCY)
        claims = claims.merge(said[["claim", "result"]], on="claim", how="left")
        if kind is None:
            return claims
        document = self.study(study)
        ids = {e.id for e in document.experiments if e.type == kind}
        own = [c.id for c in document.claims if any(q.experiment in ids for q in c.quantities())]
        return claims[claims["claim"].isin(own)].reset_index(drop=True)

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
        return is_current(self.root, self.data, study)

    @property
    def regions(self) -> pd.DataFrame:
        """One row for each region and engine; `current`: it matches the files it was made from."""
        names = ("region", "engine", "title", "study", "holds", "fails", "undecided", "coverage_90")
        found = region_results(self.data)
        current = [region_is_current(self.root, self.data, one) for one in found]
        return pd.DataFrame(found, columns=list(names)).assign(current=current)

    def region(self, name: str, engine: str) -> RegionData:
        """Return a region on an engine; InputError if it is missing."""
        for document in region_results(self.data):
            if (document["region"], document["engine"]) == (name, engine):
                return _region_data(document)
        raise InputError(f"{self.data}: no region {name!r} on {engine}; run `make regions` first")

    @property
    def law_runs(self) -> str:
        """What data/bbr_shares.csv shows, in words; empty without it."""
        found = law_runs(self.root)
        return found.words if found else ""

    def at(self, found: RegionData, x: float, y: float) -> list[Scenario]:
        """Return the scenarios of any point in a region's first panel, to be run."""
        own = load_region(self.root, found.document["region"])
        space = Space(own, self.study(own.study), found.document["engine"])
        shares = [a.range.position(value) for a, value in zip(own.axes, (x, y), strict=True)]
        return [run.scenario for run in space.runs(Point(space.panels[0], *shares))]

    def scenario(self, study: str, experiment: str) -> Mapping[str, Any]:
        """Return the scenario of an experiment's first run as a JSON document."""
        results = Results.load(self.data, study)
        runs = results.runs(self.experiment(study, experiment).id, {})
        return results.scenarios[str(runs["scenario"].iloc[0])]

    def points(self, study: str, experiment: str) -> Iterator[tuple[str, str, Scenario]]:
        """Yield levels, engine and scenario of the first replicate of each point that was run."""
        results = Results.load(self.data, study)
        runs = results.design[results.design["experiment"] == experiment]
        first = runs[runs["supported"] & (runs["replicate"] == 0)]
        for row in first.to_dict("records"):
            found = Scenario.model_validate(results.scenarios[row["scenario"]])
            yield ", ".join(row["levels"].values()), row["engine"], found

    def design(
        self, study: str, experiment: str, levels: Mapping[str, str], **parameters: Any
    ) -> Scenario:
        """Design one scenario of a study, given by its id, as `session.design` does."""
        return session.design(self.study(study), experiment, levels, **parameters)

    def is_built(self, engine: str) -> bool:
        """Return whether `simulate` can run an engine on this machine."""
        return is_built(self.root, _BUILT, engine)

    def simulate(self, scenario: Scenario, engine: str = "ns3") -> LiveRun:
        """Run a scenario on this machine; the same scenario gives the same numbers everywhere.

        InputError: the engine is not built or refuses it; RunError: the run failed.
        """
        with tempfile.TemporaryDirectory(prefix="live-") as folder:
            _, tables = run_single(self.root, _BUILT, scenario, engine, Path(folder) / "run")
        facts = _flow_facts({"": scenario.model_dump()}).drop(columns="scenario")
        flows, series = (
            tables[name].to_pandas().assign(engine=engine).merge(facts, on="flow", how="left")
            for name in ("flows.csv", "series.csv")
        )
        return LiveRun(flows, series)


def _runs(results: Results, experiment: Experiment) -> pd.DataFrame:
    """Return the runs of an experiment that an engine supports, with their levels."""
    design = results.design
    rows = design[(design["experiment"] == experiment.id) & design["supported"]]
    runs = rows[["experiment", "engine", "replicate", "scenario"]].reset_index(drop=True)
    runs["experiment"] = experiment.id
    levels = pd.DataFrame([_levels(experiment, keys) for keys in rows["levels"]])
    return pd.concat([runs, levels], axis=1)


def _flow_facts(scenarios: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return the congestion control and segment size of each TCP flow."""
    rows = [
        (name, flow["id"], report_data.flow_algorithm(flow), float(flow["segment_bytes"]))
        for name, scenario in scenarios.items()
        for flow in scenario["flows"]
        if flow["kind"] == "tcp"
    ]
    return pd.DataFrame(rows, columns=["scenario", "flow", "algorithm", "segment_bytes"])


def _region_data(document: Mapping[str, Any]) -> RegionData:
    names = [str(axis["id"]) for axis in document["axes"]]

    def points(rows: list[dict[str, Any]], *shown: str) -> pd.DataFrame:
        frame = pd.DataFrame(rows, columns=["panel", "x", "y", *shown])
        frame["panel"] = [panel_title(document, panel) for panel in frame["panel"]]
        return frame.rename(columns=dict(zip("xy", names, strict=True)))

    spans, cells = [range_of(axis) for axis in document["axes"]], []
    for panel in document["panels"]:
        places, title = middles(len(panel["quantity"])), panel_title(document, panel["panel"])
        for y, *rows in zip(places, panel["quantity"], panel["probability"], strict=True):
            for x, *found in zip(places, *rows, strict=True):
                own = zip(spans, (x, y), strict=True)
                cells.append((title, *(span.at(share, _EXACT) for span, share in own), *found))
    return RegionData(
        document,
        list(document["axes"]),
        points(document["points"], "quantity", "note"),
        points(document["validation"], "holds", "probability", "covered", "deviations"),
        pd.DataFrame(cells, columns=["panel", *names, "quantity", "probability"]),
        {
            panel_title(document, one["panel"]): border_sentences(document, one)
            for one in document["panels"]
        },
        away(document),
        scale_words(document["axes"]),
    )


def read_study(document: Mapping[str, Any]) -> Study:
    """Return a study from its parsed YAML; InputError names a wrong field."""
    try:
        return Study.model_validate(document)
    except ValidationError as error:
        raise InputError(describe(error)) from None


def open_collection(data: str, root: str) -> Collection:
    """Open a project's collection on a folder of results, relative to the project's folder.

    Without `root`, that is the nearest project folder at or above the working folder.
    InputError: there is no project or no such folder.
    """
    here = Path.cwd()
    above = (one for one in (here, *here.parents) if (one / STUDIES).is_dir())
    project = Path(root) if root else next(above, None)
    if project is None:
        raise InputError(f"no {STUDIES.as_posix()} in this folder or above it; set `root`")
    folder = project / data
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; run `make report` first, or set `data`")
    if data != str(RELEASED):
        return Collection(project, folder)
    # The release leaves out what follows from it, so notebooks read the restored folder.
    return Collection(project, released_results(project), is_release=True)


def column_of(factor: Factor) -> str:
    """Return the name of the column of a factor's levels, with the unit if they are numbers."""
    if not report_data.is_numeric(factor) or factor.unit in ("1", factor.id, "flows"):
        return factor.id
    unit = _UNITS.get(factor.unit, re.sub(r"\W+", "_", factor.unit.lower()).strip("_"))
    return f"{factor.id}_{unit}"


def _levels(experiment: Experiment, keys: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        column_of(factor): level.value if report_data.is_numeric(factor) else level.label
        for factor in experiment.factors
        for level in factor.levels
        if level.key == keys.get(factor.id)
    }


def _ordered(frame: pd.DataFrame, experiments: list[Experiment]) -> pd.DataFrame:
    """Make labels ordered categories, in the order of the study."""
    labels: dict[str, dict[str, None]] = {}
    for factor in (factor for e in experiments for factor in e.factors):
        if not report_data.is_numeric(factor):
            known = labels.setdefault(column_of(factor), {})
            known |= dict.fromkeys(level.label for level in factor.levels)
    for name in labels.keys() & set(frame.columns):
        frame[name] = pd.Categorical(frame[name], list(labels[name]), ordered=True)
    return frame
