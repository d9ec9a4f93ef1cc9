"""The bench: runs set-ups on a part of a study, and keeps account of what that costs.

Costs are the engine's cost model's, and every scenario counts once whether the store had it or
not: what a search decides must not hang on a clock or on what was run before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from replication.measure.cell_map import MappedCell
from replication.plan.config import Replicates, Tier
from replication.plan.design import Run, design_study
from replication.run.store import Store
from replication.sensitivity.design import PointRecord, record
from replication.sensitivity.design_point import DesignPoint
from replication.sensitivity.verdict_point import PointResults, point_results
from replication.sensitivity.why.part import Rung
from replication.sensitivity.why.set_up import SetUp, Space
from replication.study.errors import InputError
from replication.study.scenario import Scenario
from replication.study.study import Study

#: Runs scenarios into the store.
Simulate = Callable[[dict[str, Scenario]], None]

#: Whole runs: a scenario that is explored is one of tier paper.
_TIER = Tier(
    id="why",
    title="why",
    replicates=[Replicates(count=1)],
    levels="all",
    batch_cost_s=60.0,
)


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

    def lacks(self, run: Run) -> bool:
        """Return whether a run's kernel is not there."""
        return bool(self.timer_hz) and run.scenario.host_or_default().timer_hz not in self.timer_hz


@dataclass
class Bench:
    """Runs set-ups of one study on one engine.

    Attributes
    ----------
    space, cells
        The study's set-ups and its published numbers.
    machine
        Where runs are made and kept.
    budget_s
        Expected CPU time of all scenarios together.
    spent_s
        That of the scenarios so far.
    """

    space: Space
    cells: Sequence[MappedCell]
    machine: Machine
    budget_s: float
    spent_s: float = 0.0
    _charged: set[str] = field(default_factory=set)
    _designed: dict[tuple[SetUp, str], list[Run] | None] = field(default_factory=dict)

    @property
    def left_s(self) -> float:
        """What is left of the budget."""
        return self.budget_s - self.spent_s

    def cost_s(self, set_up: SetUp, rung: Rung) -> float:
        """Return what a set-up costs on a rung beyond what was run already."""
        runs = self.runs(set_up, rung) or []
        new = {r.scenario_id: r.cost_s for r in runs if r.scenario_id not in self._charged}
        return sum(new.values())

    def runs(self, set_up: SetUp, rung: Rung) -> list[Run] | None:
        """Return a set-up's runs on a rung; None where they make no scenario or are refused."""
        key = set_up, rung.name
        if key not in self._designed:
            self._designed[key] = self._design(set_up, rung)
        return self._designed[key]

    def _design(self, set_up: SetUp, rung: Rung) -> list[Run] | None:
        try:
            study = rung.study(self.space.on(set_up))
            runs = [run for run in self._replicates(study, _TIER) if rung.needs(run, self.cells)]
        except InputError:
            return None
        usual = self.runs((), rung) if set_up else None
        refused = {(r.experiment, r.point) for r in runs if r.refusal or self.machine.lacks(r)}
        # What the engine refuses at the defaults too is not the set-up's.
        at_defaults = {(r.experiment, r.point) for r in usual or [] if r.refusal}
        return None if set_up and refused - at_defaults else runs

    def _replicates(self, study: Study, tier: Tier) -> list[Run]:
        # A replicate has one of the levels that are averaged over.
        return design_study(study, tier, [self.machine.engine], whole_averages=False)

    def results(self, set_ups: Sequence[SetUp], rung: Rung) -> PointResults:
        """Return the results of set-ups, numbered as replicates in their order; runs what lacks.

        Raises
        ------
        RunError
            A run failed.
        """
        points, together = [], []
        for number, set_up in enumerate(set_ups):
            runs = self.runs(set_up, rung)
            assert runs is not None
            points.append(record(DesignPoint(f"w-{number}", "why", runs=tuple(runs))))
            together += runs
        return self._results(points, together)

    def _results(self, points: Sequence[PointRecord], runs: Sequence[Run]) -> PointResults:
        scenarios = {r.scenario_id: r.scenario for r in runs if not r.refusal}
        costs = {r.scenario_id: r.cost_s for r in runs if not r.refusal}
        self.spent_s += sum(cost for key, cost in costs.items() if key not in self._charged)
        self._charged |= set(costs)
        self.machine.simulate(scenarios)
        documents = {key: scenario.model_dump(mode="json") for key, scenario in scenarios.items()}
        study, machine = self.space.study.id, self.machine
        return point_results(study, machine.engine, points, documents, machine.store)

    def replicated(self, set_up: SetUp, rung: Rung, count: int) -> PointResults:
        """Return the results of one set-up in so many replicates; runs what lacks."""
        tier = _TIER.model_copy(update={"replicates": [Replicates(count=count)]})
        study = rung.study(self.space.on(set_up))
        runs = [r for r in self._replicates(study, tier) if rung.needs(r, self.cells)]
        points = [
            record(DesignPoint(f"w-{n}", "why", runs=tuple(r for r in runs if r.replicate == n)))
            for n in range(count)
        ]
        return self._results(points, runs)

    def affordable(self, set_ups: Sequence[SetUp], rung: Rung, reserve_s: float) -> list[SetUp]:
        """Return the first set-ups that can be run before no more than the reserve is left."""
        left_s = self.left_s - reserve_s
        kept = []
        for set_up in set_ups:
            if self.runs(set_up, rung) is None:
                continue
            cost_s = self.cost_s(set_up, rung)
            if cost_s > left_s:
                break
            left_s -= cost_s
            kept.append(set_up)
        return kept
