"""Verdicts at each design point: the study's own claims and cells, judged as they always are.

A design point has the results of its own runs, read from the store; `evaluate_claim` and
`judge_cell` judge them as they judge the results of a tier. Cells are looked up for all points at
once, each point a replicate, and judged one by one: looking up is what costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from replication.judge.audits.audit import audit_study, impossible_cells
from replication.judge.cell import judge_cell, replicate_means, untestable
from replication.judge.claim import evaluate_claim
from replication.judge.coverage import Coverage
from replication.measure.cell_map import MappedCell, map_cells
from replication.measure.metric import headline_quantities, quantity
from replication.measure.results import Results
from replication.measure.statistic import estimate
from replication.run.gather import read_runs
from replication.run.store import Store
from replication.sensitivity.design import PointRecord
from replication.study.published import read_published
from replication.study.storage.table import FLOW_COLUMNS, FLOW_NUMBERS, SERIES_NUMBERS
from replication.study.study import Study

CLAIM_COLUMNS = ("point", "claim", "engine", "observed", "verdict")
CELL_COLUMNS = (
    "point",
    "table",
    "row",
    "column",
    "engine",
    "unit",
    "published",
    "value",
    "inside",
    "verdict",
)
SPREAD_COLUMNS = ("point", "experiment", "levels", "engine", "flow", "metric", "value")
_SERIES_KEYS = ("scenario", "engine", "flow", "link")


@dataclass(frozen=True, kw_only=True)
class PointResults(Results):
    """Results of design points, a replicate each; series are read from the store when needed."""

    store: Store

    @cached_property
    def series(self) -> pd.DataFrame:
        """One row per scenario, engine, time and flow or monitored link."""
        wanted = self.design.loc[self.design["supported"], "scenario"].unique()
        table = read_runs(self.store, wanted, self.engines[0], "", "series.csv", SERIES_NUMBERS)
        series: pd.DataFrame = table.to_pandas()
        return series.astype(dict.fromkeys(_SERIES_KEYS, "category"))


def point_results(
    study: str,
    engine: str,
    points: Sequence[PointRecord],
    scenarios: Mapping[str, Mapping[str, Any]],
    store: Store,
) -> PointResults:
    """Return the results of design points from the store, numbered as replicates in their order.

    Raises
    ------
    RunError
        A run is not in the store.
    """
    design = pd.DataFrame(
        [
            {
                "experiment": run.experiment,
                "point": run.point,
                "levels": run.levels,
                "replicate": number,
                "engine": engine,
                "scenario": run.scenario,
                "supported": not run.refusal,
                "reason": run.refusal,
            }
            for number, point in enumerate(points)
            for run in point.runs
        ]
    )
    wanted = design.loc[design["supported"], "scenario"].unique()
    flows = pd.DataFrame(columns=list(FLOW_COLUMNS))
    if len(wanted):
        flows = read_runs(store, wanted, engine, "", "flows.csv", FLOW_NUMBERS).to_pandas()
        flows = flows[list(FLOW_COLUMNS)].astype(dict.fromkeys(FLOW_COLUMNS[:4], str))
    return PointResults(
        study_id=study,
        design=design,
        flows=flows,
        scenarios={name: scenarios[name] for name in wanted},
        series_path=Path(),
        store=store,
    )


@dataclass(frozen=True)
class Judge:
    """Judges design points of one study.

    Attributes
    ----------
    study
        The study, with its own defaults: what is expected does not change from point to point.
    cells
        Its published numbers.
    broken
        Those that the audit finds impossible, with the reason.
    """

    study: Study
    cells: list[MappedCell]
    broken: dict[tuple[str, str, str], str]

    @classmethod
    def of(cls, study: Study, published: Path) -> Judge:
        """Return the judge of a study."""
        cells = [c for c in map_cells(study, read_published(published)) if not c.is_spread]
        broken = impossible_cells(audit_study(study, cells))
        return cls(study, cells, broken)

    def claims(self, point: str, results: Results) -> Iterator[dict[str, object]]:
        """Yield a row for each claim."""
        for claim in self.study.claims:
            for row in evaluate_claim(self.study, claim, results)[0]:
                yield {"point": point} | {name: row[name] for name in CLAIM_COLUMNS[1:]}

    def judged_cells(self, points: Sequence[str], results: Results) -> Iterator[dict[str, object]]:
        """Yield a row for each point and published number, as the study reads it.

        Parameters
        ----------
        points
            Ids of the points whose results these are, in the order of their replicates.
        results
            What `point_results` returns for them.
        """
        coverage = Coverage(self.study, results)
        for cell in self.cells:
            yield from self._rows(points, cell, results, coverage)

    def _rows(
        self,
        points: Sequence[str],
        cell: MappedCell,
        results: Results,
        coverage: Coverage,
    ) -> Iterator[dict[str, object]]:
        (engine,) = results.engines
        means = replicate_means(quantity(results, cell.quantity).drop(columns="engine"))
        broken = self.broken.get(cell.key, "")
        for number, point in enumerate(points):
            found = estimate(means[means.index == number].to_numpy(dtype=float))
            why_not = untestable(coverage, engine, cell, found.n, number)
            row = judge_cell(self.study.id, cell, engine, found, why_not, broken)
            renamed = {"point": point, "value": row["reproduced_mean"]}
            yield {name: renamed.get(name, row.get(name)) for name in CELL_COLUMNS}


def spread_rows(point: str, results: Results) -> Iterator[dict[str, object]]:
    """Yield the headline metrics of each flow at each point of the experiments."""
    for row in headline_quantities(results):
        values = {"point": point, "value": row["mean"]}
        yield {name: values.get(name, row.get(name)) for name in SPREAD_COLUMNS}
