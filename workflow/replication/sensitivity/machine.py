"""The machine: where runs that a search asks for are made and kept, and what they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from replication.plan.design import Run
from replication.run.launcher import Launch
from replication.run.process import Limits
from replication.run.simulate import open_job, run_job
from replication.run.store import Store
from replication.sensitivity.design import record
from replication.sensitivity.design_point import DesignPoint
from replication.sensitivity.verdict_point import PointResults, point_results
from replication.study.scenario import Scenario

#: Runs scenarios into the store.
Simulate = Callable[[dict[str, Scenario]], None]


@dataclass(frozen=True)
class Machine:
    """Where runs are made and kept.

    Attributes
    ----------
    engine, store, simulate
        The engine, its finished runs, and what runs more into them.
    timer_hz
        Timer frequencies of the kernels that are there, 1/s; none where the engine has no kernel.
    """

    engine: str
    store: Store
    simulate: Simulate
    timer_hz: Sequence[int] = ()

    @classmethod
    def open(
        cls, root: Path, launch: Launch, store: Path, limits: Limits, timer_hz: Sequence[int] = ()
    ) -> Machine:
        """Return the machine that runs an engine's program, within limits, into a store.

        Raises
        ------
        InputError
            The program or the image is not there.
        """
        job = open_job(root, launch, {}, store, limits)

        def simulate(scenarios: dict[str, Scenario]) -> None:
            run_job(replace(job, scenarios=scenarios), lambda: None)

        return cls(launch.engine, job.store, simulate, timer_hz)

    def lacks(self, run: Run) -> bool:
        """Return whether a run's kernel is not there."""
        return bool(self.timer_hz) and run.scenario.host_or_default().timer_hz not in self.timer_hz

    def results(self, study: str, points: Sequence[Sequence[Run]]) -> PointResults:
        """Return the results of points of a study, each a replicate; runs what lacks.

        Raises
        ------
        RunError
            A run failed.
        """
        runs = [run for point in points for run in point if not run.refusal]
        scenarios = {run.scenario_id: run.scenario for run in runs}
        self.simulate(scenarios)
        documents = {key: one.model_dump(mode="json") for key, one in scenarios.items()}
        records = [
            record(DesignPoint(f"{number}", "searched", runs=tuple(point)))
            for number, point in enumerate(points)
        ]
        return point_results(study, self.engine, records, documents, self.store)
