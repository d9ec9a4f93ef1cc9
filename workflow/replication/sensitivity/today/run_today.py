"""Runs a study on a stack of today, and judges its claims there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replication.engines.catalogue import ENGINES
from replication.judge.claim import evaluate_claim
from replication.judge.flags.claim_flag import vacuity_rows
from replication.plan.config import load_study
from replication.plan.design import Run, design_study
from replication.plan.input_hashes import file_hash, input_hashes, is_same
from replication.sensitivity.machine import Machine
from replication.sensitivity.maps.account import JUDGED
from replication.sensitivity.today.stand_in import TODAY, load_today
from replication.study.errors import InputError
from replication.study.files import read_json, write_text
from replication.study.scenario import canonical_json
from replication.study.study import Study

#: Folder of the results beside those of the maps, and the end of a study's scenarios.
FOLDER, SCENARIOS = "today", ".claims.scenarios.json"


@dataclass(frozen=True)
class TodayPlan:
    """What is run of a study.

    Attributes
    ----------
    study
        The study as it is run.
    engine
        The engine of today.
    runs
        Each setting in each replicate; one that the engine refuses says why.
    """

    study: Study
    engine: str
    runs: list[Run]

    @property
    def cost_s(self) -> float:
        """Expected CPU time of all runs."""
        return sum({r.scenario_id: r.cost_s for r in self.runs if not r.refusal}.values())

    @property
    def refusals(self) -> dict[str, int]:
        """Why settings are refused, and how many."""
        return dict(sorted(Counter(r.refusal for r in self.runs if r.refusal).items()))

    def __str__(self) -> str:
        ran = sum(not run.refusal for run in self.runs)
        return (
            f"{self.study.id} on {self.engine} as it is today: {ran} of {len(self.runs)} runs, "
            f"about {self.cost_s:.0f} s of CPU"
        )


def plan_today(root: Path, name: str, tier: str) -> TodayPlan:
    """Return what is run of a study on a stack of today.

    Raises
    ------
    InputError
        configs/today.yaml has no such study or tier, or does not fit the study.
    """
    today = load_today(root)
    study = today.stand_in(name).on(load_study(root, name), today.engine)
    try:
        runs = design_study(study, today.tier(tier), [today.engine])
    except InputError as error:
        raise InputError(f"{TODAY}: {name}: {error}") from None
    return TodayPlan(study, today.engine, runs)


def run_today(root: Path, name: str, tier: str, folder: Path, machine: Machine) -> Path:
    """Run a study on a stack of today, and write its claims' verdicts; return the file.

    Raises
    ------
    InputError, RunError
        Files are missing or do not fit together; a run fails.
    """
    plan = plan_today(root, name, tier)
    replicates = sorted({run.replicate for run in plan.runs})
    results = machine.results(
        name, [[run for run in plan.runs if run.replicate == n] for n in replicates]
    )
    judged = [
        row for claim in plan.study.claims for row in evaluate_claim(plan.study, claim, results)[0]
    ]
    vacuous = {
        str(row["claim"]): str(row["evidence"])
        for row in vacuity_rows(plan.study, results, judged)
        if row["vacuous"]
    }
    claims = [
        {
            "claim": row["claim"],
            "verdict": str(row["verdict"]),
            "vacuous": row["claim"] in vacuous,
            "reason": vacuous.get(row["claim"], str(row["reason"])),
        }
        for row in judged
    ]
    write_text(folder / f"{name}{SCENARIOS}", canonical_json(results.scenarios) + "\n")
    path = folder / f"{name}{JUDGED}"
    document = {
        "study": name,
        "engine": plan.engine,
        "tier": tier,
        "replicates": len(replicates),
        "reasons": load_today(root).stand_in(name).reasons,
        "refusals": plan.refusals,
        "claims": claims,
        "cpu_s": round(plan.cost_s, 3),
        "made_from": made_from(root, name, plan.engine),
    }
    write_text(path, canonical_json(document) + "\n")
    return path


def made_from(root: Path, study: str, engine: str) -> dict[str, str]:
    """Return the hashes of all that the verdicts hang on, as the files are now."""
    return input_hashes(root, study, engine, today=file_hash(root / TODAY))


def judged_today(root: Path, data: Path) -> list[dict[str, Any]]:
    """Return what was found of each study, in the order of their names, where it is current."""
    found = []
    for path in sorted((data / "maps" / FOLDER).glob(f"*{JUDGED}")):
        document: dict[str, Any] = read_json(path)
        if _is_current(root, document):
            found.append(document)
    return found


def _is_current(root: Path, document: Mapping[str, Any]) -> bool:
    engine, study = str(document["engine"]), str(document["study"])
    if engine not in ENGINES or study not in load_today(root).studies:
        return False
    return is_same(document["made_from"], made_from(root, study, engine))
