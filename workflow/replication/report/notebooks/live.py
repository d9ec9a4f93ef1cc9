"""A live run: one scenario simulated where the notebook runs, in seconds."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from replication.plan.single_run import run_single
from replication.report.drawing.data import flow_algorithm
from replication.study.scenario import Scenario

DATA = Path("data/reproduced")


@dataclass(frozen=True)
class LiveRun:
    """What one run gave.

    Attributes
    ----------
    scenario
        What was run.
    flows, series
        The tables of `Collection.flows` and `Collection.series`, without factors.
    """

    scenario: Scenario
    flows: pd.DataFrame
    series: pd.DataFrame


def run_live(root: Path, scenario: Scenario, engine: str) -> LiveRun:
    """Run a scenario here and now; the same scenario gives the same numbers everywhere.

    Raises
    ------
    InputError
        The engine is not built (the message says what to run), or refuses the scenario.
    RunError
        The run failed.
    """
    with tempfile.TemporaryDirectory(prefix="live-") as folder:
        _, tables = run_single(root, DATA, scenario, engine, Path(folder) / "run")
    tcp = [flow.model_dump() for flow in scenario.flows if flow.kind == "tcp"]
    facts = pd.DataFrame(
        [(flow["id"], flow_algorithm(flow), float(flow["segment_bytes"])) for flow in tcp],
        columns=["flow", "algorithm", "segment_bytes"],
    )
    flows, series = (
        tables[name].to_pandas().assign(engine=engine).merge(facts, on="flow", how="left")
        for name in ("flows.csv", "series.csv")
    )
    return LiveRun(scenario, flows, series)
