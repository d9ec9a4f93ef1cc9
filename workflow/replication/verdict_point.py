"""Verdicts at each design point: the study's own claims and cells, judged as they always are.

A design point has the results of its own runs, read from the store; `evaluate_claim` and
`evaluate_cells` judge them as they judge the results of a tier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from replication.audit import audit_study
from replication.cell import IMPOSSIBLE, MappedCell, evaluate_cells, map_cells, read_published
from replication.claim import evaluate_claim
from replication.evaluate import headline_quantities
from replication.gather import read_runs
from replication.hypothesis import Hypothesis, check_hypothesis
from replication.results import Results
from replication.sensitivity_design import PointRecord
from replication.store import Store
from replication.study import Study
from replication.table import FLOW_COLUMNS, FLOW_NUMBERS, SERIES_NUMBERS

CLAIM_COLUMNS = ("point", "claim", "engine", "observed", "verdict")
CELL_COLUMNS = (
    "point",
    "reading",
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
#: Name of the study's own reading of its tables.
STATED = "stated"
_SERIES_KEYS = ("scenario", "engine", "flow", "link")


@dataclass(frozen=True, kw_only=True)
class PointResults(Results):
    """Results of one design point; series are read from the store when a claim needs them."""

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
    point: PointRecord,
    scenarios: Mapping[str, Mapping[str, Any]],
    store: Store,
) -> PointResults:
    """Return the results of a design point from the store.

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
                "replicate": 0,
                "engine": engine,
                "scenario": run.scenario,
                "supported": not run.refusal,
                "reason": run.refusal,
            }
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
    readings
        Hypotheses that read a table in another way.
    """

    study: Study
    cells: list[MappedCell]
    broken: dict[tuple[str, str, str], str]
    readings: list[Hypothesis]

    @classmethod
    def of(cls, study: Study, published: Path, hypotheses: Sequence[Hypothesis]) -> Judge:
        """Return the judge of a study; InputError where a hypothesis does not fit it."""
        cells = map_cells(study, read_published(published))
        for hypothesis in hypotheses:
            check_hypothesis(hypothesis, study, cells)
        broken = {
            (finding.table, finding.row, finding.column): finding.reason
            for finding in audit_study(study, cells)
            if finding.finding == IMPOSSIBLE
        }
        return cls(study, cells, broken, [h for h in hypotheses if h.reading is not None])

    def claims(self, point: str, results: Results) -> Iterator[dict[str, object]]:
        """Yield a row for each claim."""
        for claim in self.study.claims:
            for row in evaluate_claim(self.study, claim, results)[0]:
                yield {"point": point} | {name: row[name] for name in CLAIM_COLUMNS[1:]}

    def judged_cells(self, point: str, results: Results) -> Iterator[dict[str, object]]:
        """Yield a row for each published number, under the stated and every other reading."""
        yield from self._cells(point, STATED, self.cells, results)
        for hypothesis in self.readings:
            assert hypothesis.reading is not None
            changed = [hypothesis.reading.of(c) for c in self.cells if hypothesis.concerns(c)]
            yield from self._cells(point, hypothesis.id, changed, results)

    def _cells(
        self, point: str, reading: str, cells: list[MappedCell], results: Results
    ) -> Iterator[dict[str, object]]:
        for row in evaluate_cells(cells, self.study, results, self.broken):
            renamed = {"point": point, "reading": reading, "value": row["reproduced_mean"]}
            yield {name: renamed.get(name, row.get(name)) for name in CELL_COLUMNS}


def spread_rows(point: str, results: Results) -> Iterator[dict[str, object]]:
    """Yield the headline metrics of each flow at each point of the experiments."""
    for row in headline_quantities(results):
        values = {"point": point, "value": row["mean"]}
        yield {name: values.get(name, row.get(name)) for name in SPREAD_COLUMNS}
