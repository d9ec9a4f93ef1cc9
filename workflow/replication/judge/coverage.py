"""Coverage: which of the points that a number stands for were run, by which engine, for how long.

A verdict that rests on less than the paper's experiment says so.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable

import pandas as pd

from replication.judge.bound import durations_s
from replication.measure.results import Results
from replication.study.claim_model import Quantity
from replication.study.study import Study


class Coverage:
    """What was run of one study, against what the study asks for."""

    def __init__(self, study: Study, results: Results) -> None:
        self.study = study
        self.results = results
        self._full_duration_s = functools.cache(self._duration_of)
        self._known_runs: dict[tuple[str, str], pd.DataFrame] = {}
        self._notes: dict[tuple[str, str, str], list[str]] = {}
        self._known = set(zip(results.flows["scenario"], results.flows["engine"], strict=True))

    def notes(self, engine: str, wanted: Quantity) -> list[str]:
        """Return what `engine` left out of a quantity's points, in sentences."""
        key = engine, wanted.experiment, json.dumps(wanted.where, sort_keys=True)
        if key not in self._notes:
            self._notes[key] = self._sentences(engine, wanted)
        return self._notes[key]

    def _sentences(self, engine: str, wanted: Quantity) -> list[str]:
        runs = self._runs(engine, wanted)
        supported = runs[runs["supported"]]
        refused = runs[~runs["supported"]]
        needed = self._points(wanted)
        notes = []
        if not refused.empty:
            why = ", ".join(sorted(set(refused["reason"])))
            notes.append(f"{engine} refuses {refused['point'].nunique()} ({why})")
        if needed > runs["point"].nunique():
            notes.append(f"this tier leaves out {needed - runs['point'].nunique()}")
        sentences = []
        if notes:
            ran = supported["point"].nunique()
            sentences.append(f"{ran} of {needed} points were run: {'; '.join(notes)}.")
        failed = int((~self._has_result(supported)).sum())
        if failed:
            sentences.append(f"{failed} of {len(supported)} runs have no result.")
        short, full = self.shortened(engine, wanted)
        if short < full:
            sentences.append(f"Runs last {short:g} s, the study's {full:g} s.")
        return sentences

    def points(self, engine: str, quantities: Iterable[Quantity]) -> list[dict[str, str]]:
        """Return the points of the quantities that `engine` ran, each once, as the table's rows."""
        found = {
            (wanted.experiment, str(point)): None
            for wanted in quantities
            for runs in [self._runs(engine, wanted)]
            for point in runs.loc[runs["supported"], "point"]
        }
        return [{"experiment": experiment, "point": point} for experiment, point in found]

    def shortened(
        self, engine: str, wanted: Quantity, replicate: int | None = None
    ) -> tuple[float, float]:
        """Return the shortest duration that was run, and the study's own for these points, in s.

        With `replicate`, of the runs of that replicate alone.
        """
        runs = self._runs(engine, wanted)
        if replicate is not None:
            runs = runs[runs["replicate"] == replicate]
        scenarios = runs.loc[runs["supported"], "scenario"].unique()
        full = self._full_duration_s(wanted.experiment, json.dumps(wanted.where, sort_keys=True))
        durations = [float(self.results.scenarios[s]["duration_s"]) for s in scenarios]
        return min([full, *durations]), full

    def replicates(self, engine: str, wanted: Quantity) -> set[int]:
        """Return the replicates that the design has at every point that `engine` supports."""
        runs = self._runs(engine, wanted)
        runs = runs[runs["supported"]]
        points = runs.groupby("replicate")["point"].nunique()
        return {int(number) for number in points.index[points == runs["point"].nunique()]}

    def _runs(self, engine: str, wanted: Quantity) -> pd.DataFrame:
        key = wanted.experiment, json.dumps(wanted.where, sort_keys=True)
        if key not in self._known_runs:
            self._known_runs[key] = self.results.runs(wanted.experiment, wanted.where)
        runs = self._known_runs[key]
        return runs[runs["engine"] == engine]

    def _points(self, wanted: Quantity) -> int:
        needed = 1
        for factor in self.study.experiment(wanted.experiment).axes:
            needed *= len(set(wanted.where.get(factor.id, [level.key for level in factor.levels])))
        return needed

    def _has_result(self, runs: pd.DataFrame) -> pd.Series[bool]:
        pairs = zip(runs["scenario"], runs["engine"], strict=True)
        return pd.Series([pair in self._known for pair in pairs], index=runs.index, dtype=bool)

    def _duration_of(self, experiment: str, where: str) -> float:
        return min(durations_s(self.study, experiment, json.loads(where)))
