"""Judge studies under a named variation, such as on a modern kernel.

Its verdicts are never counted as the study's. A study whose own system is the variation's engine
has such verdicts already and is not run again.
"""

from collections import Counter
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from replication.base.errors import InputError, check_known
from replication.base.position import located, within
from replication.base.table import flat, read_typed
from replication.design.config import load_study
from replication.design.design import Run, design_study
from replication.design.input_hashes import input_hashes, is_same
from replication.engines.model import Engine
from replication.explore.machine import Costs, Machine, by_replicate, write_json, write_scenarios
from replication.explore.variation_model import (
    VARIATIONS,
    load_variation,
    variation_path,
)
from replication.study.study import Study
from replication.study.variation import apply, check_variation
from replication.verdicts.claim import evaluate_claim
from replication.verdicts.sample import Coverage
from replication.verdicts.verdict_table import ClaimRow

#: Ends of a study's two files: its verdicts, and its scenarios.
JUDGED, SCENARIOS = ".claims.json", ".claims.scenarios.json"


@dataclass(frozen=True)
class VariedClaim:
    """The verdict on a claim under the variation."""

    claim: str
    verdict: str
    reason_code: str
    reason: str


@dataclass(frozen=True)
class VariedResult:
    """A study under a named variation: its file of verdicts."""

    study: str
    engine: str
    tier: str
    #: What is substituted, and why.
    reasons: list[str]
    #: How many runs the engine refuses, by its words.
    refusals: dict[str, int]
    claims: list[VariedClaim]
    #: Expected CPU time of the runs.
    cpu_s: float
    input_hashes: dict[str, str]


def judge_claims(study: Study, runs: list[Run], machine: Machine) -> list[ClaimRow]:
    """Return the verdicts on a study's claims by the rules of the report; run what is missing."""
    coverages = Coverage.of_all(study, machine.results(study.id, by_replicate(runs)))
    return flat(evaluate_claim(claim, coverages) for claim in study.claims)


def plan_variation(root: Path, variation: str, name: str, tier: str) -> tuple[Study, list[Run]]:
    """Return a study under a named variation, and its runs in a tier."""
    named = load_variation(root, variation)
    study = load_study(root, name)
    with located(variation_path(root, variation)):
        check_known("studies", [name], named.studies, ("studies",))
        check_known("tiers", [tier], named.tiers, ("tiers",))
        if study.original_system.engine == named.engine:
            text = f"studies: the verdicts on {name} already come from {named.engine}; remove it"
            raise InputError(text, ("studies", name))
        with within("studies", name, "set", words=name):
            if (changes := named.studies[name].set) is not None:
                check_variation(study, changes)
                # The study's own substitutions on this engine must not override these.
                others = [part for part in study.substitutions if part.engine != named.engine]
                study = apply(study.model_copy(update={"substitutions": others}), changes)
            return study, design_study(study, named.tiers[tier], [named.engine])


def judge_variation(
    root: Path, variation: str, name: str, tier: str, folder: Path, machine: Machine
) -> Path:
    """Run a study under a named variation, and write its claims' verdicts; return the file."""
    named = load_variation(root, variation)
    study, runs = plan_variation(root, variation, name, tier)
    rows = judge_claims(study, runs, machine)
    result = VariedResult(
        study=name,
        engine=named.engine,
        tier=tier,
        reasons=named.studies[name].reasons,
        refusals=dict(Counter(run.refusal for run in runs if run.refusal)),
        claims=[VariedClaim(row.claim, row.verdict, row.reason_code, row.reason) for row in rows],
        cpu_s=round(Costs().further_s(runs), 3),
        input_hashes=sources(root, variation, name, machine.engine),
    )
    write_scenarios(folder / f"{name}{SCENARIOS}", runs)
    path = folder / f"{name}{JUDGED}"
    write_json(path, asdict(result))
    return path


def sources(root: Path, variation: str, name: str, engine: Engine) -> dict[str, str]:
    """Return the current hashes of all that decides the verdicts."""
    named = load_variation(root, variation).decisive(include={"tiers", "studies"})
    replaced = named["studies"].get(name)
    return input_hashes(root, name, engine, tiers=named["tiers"], replaced=replaced)


def check_variations(root: Path, studies: list[str]) -> list[str]:
    """Return the variations of the studies in words; InputError for one that cannot be run."""
    checked = []
    for variation in VARIATIONS:
        for name in sorted(set(load_variation(root, variation).studies) & set(studies)):
            plan_variation(root, variation, name, "paper")
            checked.append(f"{name} under {variation}")
    return checked


def varied_results(root: Path, data: Path, variation: str) -> list[VariedResult]:
    """Return the current result of each study, in the order of their names."""
    current = []
    for path in sorted((data / "regions" / variation).glob(f"*{JUDGED}")):
        named = load_variation(root, variation)
        result = read_typed(path, VariedResult)
        if result.study in named.studies and result.engine == named.engine:
            now = partial(sources, root, variation, result.study)
            if is_same(data, result.input_hashes, now):
                current.append(result)
    return current
