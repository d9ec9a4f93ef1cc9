"""The design of a study's sensitivity on disk: its points, runs and batches, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from replication.engines.catalogue import ENGINES
from replication.plan.config import load_study
from replication.plan.design import batch_runs
from replication.sensitivity.design_point import DesignPoint, design_points
from replication.study.errors import InputError
from replication.study.files import read_json, write_text
from replication.study.scenario import canonical_json
from replication.study.sensitivity_settings import load_sensitivity

#: CPU seconds to judge one design point; 0.84 were measured on nishitha (107 points).
JUDGE_COST_S = 1.0


@dataclass(frozen=True)
class RunRecord:
    """One run of a design point, as the design file has it."""

    experiment: str
    point: str
    levels: dict[str, str]
    scenario: str
    refusal: str


@dataclass(frozen=True)
class PointRecord:
    """One design point, as the design file has it; see `sensitivity.design_point.DesignPoint`."""

    id: str
    kind: str
    changed: str
    values: dict[str, JsonValue]
    refusal: str
    runs: list[RunRecord]


@dataclass(frozen=True)
class SensitivityDesign:
    """All design points of a study on one engine.

    Attributes
    ----------
    cost_s
        Their expected CPU time.
    left_out, refused
        See `sensitivity.design_point.StudyDesign`.
    """

    study: str
    engine: str
    cost_s: float
    points: list[PointRecord]
    left_out: int = 0
    refused: dict[str, list[JsonValue]] = field(default_factory=dict)

    def of(self, *kinds: str) -> list[PointRecord]:
        """Return the points of some kinds, in the order of the design."""
        return [point for point in self.points if point.kind in kinds]


def write_sensitivity_design(root: Path, name: str, folder: Path, engine: str) -> SensitivityDesign:
    """Design a study's sensitivity; write design.json and batches/<n>.json below `folder`.

    The number of batches is the settings' `jobs`, so that the workflow knows their names; batches
    without a scenario are empty.

    Raises
    ------
    InputError
        Settings and study do not fit together.
    """
    settings = load_sensitivity(root)
    study = load_study(root, name)
    designed = design_points(study, settings, engine)
    points = designed.points
    runs = [run for point in points for run in point.runs]
    distinct = {run.scenario_id: run for run in runs if not run.refusal}
    total_s = sum(run.cost_s for run in distinct.values())
    fingerprint = ENGINES[engine].fingerprint(root)
    batches = batch_runs(runs, {engine: fingerprint}, max(total_s, 1.0) / settings.jobs)
    for number in range(settings.jobs):
        members = batches[number].scenarios if number < len(batches) else []
        document = {
            "batch": f"sensitivity-{name}-{number}",
            "engine": engine,
            "cost_s": round(sum(distinct[key].cost_s for key in members), 3),
            "costs_s": {key: round(distinct[key].cost_s, 3) for key in members},
            "scenarios": {key: distinct[key].scenario.model_dump(mode="json") for key in members},
        }
        write_text(folder / "batches" / f"{number}.json", canonical_json(document) + "\n")
    design = SensitivityDesign(
        name,
        engine,
        round(total_s, 3),
        [record(point) for point in points],
        designed.left_out,
        designed.refused,
    )
    write_text(folder / "design.json", _text(design))
    return design


def read_sensitivity_design(folder: Path) -> SensitivityDesign:
    """Read design.json; InputError says what to run where it is missing or of another version."""
    path = folder / "design.json"
    document = read_json(path)
    try:
        points = read_points(document.pop("points"))
        return SensitivityDesign(**document, points=points)
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path}: is not a design ({error}); delete it and run again") from None


def read_points(documents: Sequence[Mapping[str, Any]]) -> list[PointRecord]:
    """Return the points of a design file."""
    return [
        PointRecord(**{**point, "runs": [RunRecord(**run) for run in point["runs"]]})
        for point in documents
    ]


def write_points(points: Sequence[PointRecord]) -> list[dict[str, Any]]:
    """Return points as a design file has them."""
    return [{**p.__dict__, "runs": [run.__dict__ for run in p.runs]} for p in points]


def read_scenarios(folder: Path) -> dict[str, dict[str, Any]]:
    """Return every scenario document of a design's batches by its id."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((folder / "batches").glob("*.json")):
        found |= read_json(path)["scenarios"]
    return found


def read_costs(folder: Path) -> dict[str, float]:
    """Return the expected CPU seconds of each scenario of a design's batches."""
    found: dict[str, float] = {}
    for path in sorted((folder / "batches").glob("*.json")):
        found |= read_json(path)["costs_s"]
    return found


def describe_design(design: SensitivityDesign) -> str:
    """Return a line on how many points and scenarios there are, and what they cost."""
    scenarios = {r.scenario for p in design.points for r in p.runs if not r.refusal}
    refused = sum(bool(point.refusal) for point in design.points)
    line = (
        f"{design.study}: {len(design.points)} design points, {len(scenarios)} scenarios on "
        f"{design.engine}, about {design.cost_s:.0f} s of CPU"
    )
    if design.left_out:
        line += f"; {design.left_out} further points are beyond the budget"
    return line + (f"; {refused} points make no scenario" if refused else "")


def record(point: DesignPoint) -> PointRecord:
    """Return a design point as the design file has it."""
    runs = [
        RunRecord(run.experiment, run.point, run.levels, run.scenario_id, run.refusal)
        for run in point.runs
    ]
    return PointRecord(point.id, point.kind, point.changed, point.values, point.refusal, runs)


def _text(design: SensitivityDesign) -> str:
    return canonical_json({**design.__dict__, "points": write_points(design.points)}) + "\n"
