"""The machine: makes the runs of an exploration, keeps them in the store, and reads results."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import pandas as pd

from replication.base.files import write_text
from replication.base.table import FLOW_COLUMNS
from replication.design.config import Extent, Replicates
from replication.design.design import Run, design_study
from replication.engines.catalogue import chosen_engine
from replication.engines.model import Engine
from replication.metrics.sampled import SampledResults
from replication.simulate.run import open_job, read_runs, run_job
from replication.simulate.runtime import Launch
from replication.simulate.store import Store
from replication.study.scenario import Host, Scenario, canonical_json
from replication.study.study import Study


@dataclass
class Costs:
    """Expected CPU time of scenarios by the cost models, each counted once, stored or not.

    Measured times would let the choice of runs depend on the machine and on earlier runs.
    """

    spent_s: float = 0.0
    counted: set[str] = field(default_factory=set)

    def further_s(self, runs: Iterable[Run]) -> float:
        """Return the cost of runs that were not counted already."""
        costs = {run.scenario_id: run.cost_s for run in runs if not run.refusal}
        return math.fsum(cost for key, cost in costs.items() if key not in self.counted)

    def count(self, runs: Iterable[Run]) -> None:
        """Count runs as made."""
        runs = [run for run in runs if not run.refusal]
        self.spent_s += self.further_s(runs)
        self.counted |= {run.scenario_id for run in runs}


@dataclass(frozen=True)
class Machine:
    """An engine in its chosen version, and its store; `simulate` runs scenarios into the store."""

    engine: Engine
    store: Store
    simulate: Callable[[dict[str, Scenario]], None]

    @classmethod
    def open(cls, root: Path, launch: Launch) -> Self:
        """Return the machine that runs an engine as `launch` says."""
        job = open_job(root, launch, {})

        def simulate(scenarios: dict[str, Scenario]) -> None:
            run_job(replace(job, scenarios=scenarios), lambda: None)

        return cls(chosen_engine(launch.engine, launch.ns3_version), job.store, simulate)

    def refusal(self, run: Run) -> str:
        """Return why a run cannot be made here: the engine refuses it, or lacks its kernel."""
        timer_hz = run.scenario.host.timer_hz
        is_missing = self.engine.name == "linux" and timer_hz != Host().timer_hz
        return run.refusal or ("its kernel is not there" if is_missing else "")

    def results(self, study: str, points: Sequence[Sequence[Run]]) -> SampledResults:
        """Return the results of points of a study, each a replicate; run what is missing."""
        supported: dict[str, Scenario] = {}
        rows = []
        for number, point in enumerate(points):
            supported |= supported_scenarios(point)
            for run in point:
                place = (run.experiment, run.point, run.levels)
                rows.append((*place, number, run.scenario_id, run.refusal))
        self.simulate(supported)
        columns = ["experiment", "point", "levels", "replicate", "scenario", "reason"]
        design = pd.DataFrame(rows, columns=columns).assign(engine=self.engine.name)
        design["supported"] = design["reason"] == ""
        read = partial(read_runs, self.store, supported, self.engine.name, "")
        flows = pd.DataFrame(columns=list(FLOW_COLUMNS))
        if supported:
            table = read("flows.csv").to_pandas().reindex(columns=flows.columns)
            flows = table.astype(dict.fromkeys(FLOW_COLUMNS[:4], str))
        return SampledResults(
            study_id=study,
            design=design,
            flows=flows,
            scenarios=as_documents(supported),
            read_series=lambda: read("series.csv").to_pandas(),
        )


def whole_runs(
    study: Study, engine: str, version: str, count: int = 1, levels: Literal["all", "quick"] = "all"
) -> list[Run]:
    """Return `count` replicates in full length, at all levels or at those of tier quick."""
    extent = Extent(replicates=[Replicates(count=count)], levels=levels)
    return design_study(study, extent, [engine], version)


def by_replicate(runs: Sequence[Run]) -> list[list[Run]]:
    """Return the runs of each replicate."""
    count = max((run.replicate for run in runs), default=-1) + 1
    return [[run for run in runs if run.replicate == number] for number in range(count)]


def write_scenarios(path: Path, runs: Iterable[Run]) -> None:
    """Write the scenarios of runs by their ids; `replicate run` starts any of them."""
    write_json(path, as_documents(supported_scenarios(runs)))


def supported_scenarios(runs: Iterable[Run]) -> dict[str, Scenario]:
    """Return the scenarios of runs that the engine does not refuse, by their ids."""
    return {run.scenario_id: run.scenario for run in runs if not run.refusal}


def as_documents(scenarios: Mapping[str, Scenario]) -> dict[str, dict[str, Any]]:
    """Return scenarios as plain data, by their ids."""
    return {name: scenario.model_dump(mode="json") for name, scenario in scenarios.items()}


def write_json(path: Path, value: Any) -> None:
    """Write canonical JSON, the form that hashes are taken of."""
    write_text(path, canonical_json(value) + "\n")
