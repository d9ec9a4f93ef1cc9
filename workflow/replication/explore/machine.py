"""The machine: where runs that an exploration needs are made and kept, and what they give."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from replication.design.design import Run
from replication.engines.catalogue import chosen_engine
from replication.engines.model import Engine
from replication.engines.ns3 import NS3_VERSION
from replication.metrics.sampled import SampledResults
from replication.simulate.run import open_job, read_runs, run_job
from replication.simulate.runtime import Launch
from replication.simulate.store import Store
from replication.study.files import write_text
from replication.study.scenario import Host, Scenario, canonical_json
from replication.study.storage.table import FLOW_COLUMNS, FLOW_NUMBERS, SERIES_NUMBERS

#: Runs scenarios into the store.
Simulate = Callable[[dict[str, Scenario]], None]


@dataclass
class Costs:
    """Expected CPU time of scenarios, each counted once whether the store had it or not.

    It is the engines' cost model's: what is run next must not hang on a clock or on what was run
    before.
    """

    spent_s: float = 0.0
    counted: set[str] = field(default_factory=set)

    def further_s(self, runs: Iterable[Run]) -> float:
        """Return what runs cost beyond what was counted already."""
        costs = {run.scenario_id: run.cost_s for run in runs if not run.refusal}
        return math.fsum(cost for key, cost in costs.items() if key not in self.counted)

    def count(self, runs: Iterable[Run]) -> None:
        """Count runs as made."""
        runs = [run for run in runs if not run.refusal]
        self.spent_s += self.further_s(runs)
        self.counted |= {run.scenario_id for run in runs}


@dataclass(frozen=True)
class Machine:
    """Where runs are made and kept.

    `simulate` runs scenarios into the store; `ns3_version` is which ns-3 the engine `ns3` is.
    """

    engine: str
    store: Store
    simulate: Simulate
    ns3_version: str = NS3_VERSION

    @property
    def exact_engine(self) -> Engine:
        """The engine, in the version chosen."""
        return chosen_engine(self.engine, self.ns3_version)

    @classmethod
    def open(cls, root: Path, launch: Launch) -> Machine:
        """Return the machine that runs an engine as `launch` says."""
        job = open_job(root, launch, {})

        def simulate(scenarios: dict[str, Scenario]) -> None:
            run_job(replace(job, scenarios=scenarios), lambda: None)

        return cls(launch.engine, job.store, simulate, launch.ns3_version)

    def refusal(self, run: Run) -> str:
        """Return why a run cannot be made here: by the engine, or its kernel is not built."""
        timer_hz = run.scenario.host_or_default().timer_hz
        is_missing = self.engine == "linux" and timer_hz != Host().timer_hz
        return run.refusal or ("its kernel is not there" if is_missing else "")

    def results(self, study: str, points: Sequence[Sequence[Run]]) -> SampledResults:
        """Return the results of points of a study, each a replicate; runs what lacks."""
        self.simulate({r.scenario_id: r.scenario for own in points for r in own if not r.refusal})
        return self.read(study, points)

    def read(self, study: str, points: Sequence[Sequence[Run]]) -> SampledResults:
        """Return the results of points that were run, numbered as replicates in their order."""
        runs = [(number, run) for number, point in enumerate(points) for run in point]
        columns = ["experiment", "point", "levels", "replicate", "scenario", "reason"]
        rows = [(r.experiment, r.point, r.levels, n, r.scenario_id, r.refusal) for n, r in runs]
        design = pd.DataFrame(rows, columns=columns).assign(engine=self.engine)
        design["supported"] = design["reason"] == ""
        wanted = design.loc[design["supported"], "scenario"].unique()
        flows = pd.DataFrame(columns=list(FLOW_COLUMNS))
        if len(wanted):
            found = read_runs(self.store, wanted, self.engine, "", "flows.csv", FLOW_NUMBERS)
            flows = found.to_pandas().reindex(columns=list(FLOW_COLUMNS))
            flows = flows.astype(dict.fromkeys(FLOW_COLUMNS[:4], str))
        scenarios = {run.scenario_id: run.scenario for _, run in runs}
        return SampledResults(
            study_id=study,
            design=design,
            flows=flows,
            scenarios={name: scenarios[name].model_dump(mode="json") for name in wanted},
            read_series=lambda: read_runs(
                self.store, wanted, self.engine, "", "series.csv", SERIES_NUMBERS
            ).to_pandas(),
        )


def by_replicate(runs: Sequence[Run]) -> list[list[Run]]:
    """Return runs as points, each the runs of one replicate."""
    count = max((run.replicate for run in runs), default=-1) + 1
    return [[run for run in runs if run.replicate == number] for number in range(count)]


def write_scenarios(path: Path, runs: Iterable[Run]) -> None:
    """Write the scenarios of runs, by their ids: `replicate run` starts any of them."""
    found = {run.scenario_id: run.scenario for run in runs if not run.refusal}
    write_json(path, {name: one.model_dump(mode="json") for name, one in found.items()})


def write_json(path: Path, value: Any) -> None:
    """Write what JSON can hold in the one form that hashes are taken of."""
    write_text(path, canonical_json(value) + "\n")
