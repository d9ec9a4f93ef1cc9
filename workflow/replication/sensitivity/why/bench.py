"""The bench: runs set-ups on a part of a study, and keeps account of what that costs.

Costs are the engine's cost model's, and every scenario counts once whether the store had it or
not: what a search decides must not hang on a clock or on what was run before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from replication.measure.cell_map import MappedCell
from replication.plan.design import Run, design_study
from replication.sensitivity.design_point import explored_tier
from replication.sensitivity.machine import Machine
from replication.sensitivity.verdict_point import PointResults
from replication.sensitivity.why.part import StudyPart
from replication.sensitivity.why.set_up import SetUp, Space
from replication.study.errors import InputError
from replication.study.study import Study


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
    _replicated: dict[tuple[SetUp, str, int], PointResults] = field(default_factory=dict)

    @property
    def left_s(self) -> float:
        """What is left of the budget."""
        return self.budget_s - self.spent_s

    def cost_s(self, set_up: SetUp, rung: StudyPart) -> float:
        """Return what a set-up costs on a rung beyond what was run already."""
        runs = self.runs(set_up, rung) or []
        new = {r.scenario_id: r.cost_s for r in runs if r.scenario_id not in self._charged}
        return sum(new.values())

    def runs(self, set_up: SetUp, rung: StudyPart) -> list[Run] | None:
        """Return a set-up's runs on a rung; None where they make no scenario or are refused."""
        key = set_up, rung.name
        if key not in self._designed:
            self._designed[key] = self._design(set_up, rung)
        return self._designed[key]

    def _design(self, set_up: SetUp, rung: StudyPart) -> list[Run] | None:
        try:
            study = rung.study(self.space.on(set_up))
            runs = self._needed(study, rung)
        except InputError:
            return None
        usual = self.runs((), rung) if set_up else None
        refused = {(r.experiment, r.point) for r in runs if r.refusal or self.machine.lacks(r)}
        # What the engine refuses at the defaults too is not the set-up's.
        at_defaults = {(r.experiment, r.point) for r in usual or [] if r.refusal}
        return None if set_up and refused - at_defaults else runs

    def _needed(self, study: Study, rung: StudyPart, replicates: int = 1) -> list[Run]:
        # Whole runs, as in tier paper. A replicate has one of the levels that are averaged over.
        tier = explored_tier("all", replicates)
        runs = design_study(study, tier, [self.machine.engine], whole_averages=False)
        return [run for run in runs if rung.needs(run, self.cells)]

    def results(self, set_ups: Sequence[SetUp], rung: StudyPart) -> PointResults:
        """Return the results of set-ups, numbered as replicates in their order; runs what lacks.

        Raises
        ------
        RunError
            A run failed.
        """
        points = []
        for set_up in set_ups:
            runs = self.runs(set_up, rung)
            assert runs is not None
            points.append(runs)
        return self._results(points)

    def _results(self, points: Sequence[Sequence[Run]]) -> PointResults:
        costs = {r.scenario_id: r.cost_s for runs in points for r in runs if not r.refusal}
        self.spent_s += sum(cost for key, cost in costs.items() if key not in self._charged)
        self._charged |= set(costs)
        return self.machine.results(self.space.study.id, points)

    def replicated(self, set_up: SetUp, rung: StudyPart, count: int) -> PointResults:
        """Return the results of one set-up in so many replicates, read once; runs what lacks."""
        key = set_up, rung.name, count
        if key not in self._replicated:
            runs = self._needed(rung.study(self.space.on(set_up)), rung, count)
            points = [[run for run in runs if run.replicate == n] for n in range(count)]
            self._replicated[key] = self._results(points)
        return self._replicated[key]

    def affordable(
        self, set_ups: Sequence[SetUp], rung: StudyPart, reserve_s: float
    ) -> list[SetUp]:
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
