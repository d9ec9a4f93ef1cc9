"""Studies on a modern kernel: their claims judged with the variants of its network stack.

configs/modern_kernel.yaml substitutes what the stack lacks, with reasons; the verdicts are never
counted as the study's. A study of a Linux kernel has such verdicts already and is not run again.
"""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from replication.design.config import load_study
from replication.design.design import Run, design_study
from replication.design.input_hashes import input_hashes, is_same
from replication.engines.model import Engine
from replication.explore.machine import Costs, Machine, by_replicate, write_json
from replication.explore.modern_model import CONFIG, load_modern, modern_studies
from replication.study.errors import InputError, check_known
from replication.study.files import read_json
from replication.study.position import located, within
from replication.study.study import Study
from replication.study.variation import apply, check_variation
from replication.verdicts.claim import evaluate_claim
from replication.verdicts.sample import Coverage

#: Ends of a study's two files: its verdicts, and its scenarios.
JUDGED, SCENARIOS = ".claims.json", ".claims.scenarios.json"


def plan_modern(root: Path, name: str, tier: str) -> tuple[Study, list[Run]]:
    """Return a study with its substitutions, and its runs in a tier."""
    modern = load_modern(root)
    study = load_study(root, name)
    with located(root / CONFIG):
        check_known("studies", [name], modern.studies, ("studies",))
        check_known("tiers", [tier], modern.tiers, ("tiers",))
        if study.original_system.engine == modern.engine:
            text = f"studies: the verdicts on {name} already come from {modern.engine}; remove it"
            raise InputError(text, ("studies", name))
        with within("studies", name, "set", words=name):
            if (substituted := modern.studies[name].set) is not None:
                check_variation(study, substituted)
                # The study's own substitutions on this engine must not override these.
                others = [one for one in study.substitutions if one.engine != modern.engine]
                study = apply(study.model_copy(update={"substitutions": others}), substituted)
            return study, design_study(study, modern.tiers[tier], [modern.engine])


def run_modern(root: Path, name: str, tier: str, folder: Path, machine: Machine) -> Path:
    """Run a study on the modern kernel, and write its claims' verdicts; return the file."""
    modern, (study, runs) = load_modern(root), plan_modern(root, name, tier)
    results = machine.results(name, by_replicate(runs))
    engines = Coverage.of_all(study, results)
    judged = [row for claim in study.claims for row in evaluate_claim(claim, engines)]
    document = {
        "study": name,
        "engine": modern.engine,
        "tier": tier,
        "reasons": modern.studies[name].reasons,
        "refusals": Counter(run.refusal for run in runs if run.refusal),
        "claims": [
            {
                "claim": row.claim,
                "verdict": row.verdict,
                "reason_code": row.reason_code,
                "reason": row.reason,
            }
            for row in judged
        ],
        "cpu_s": round(Costs().further_s(runs), 3),
        "input_hashes": sources(root, name, machine.engine),
    }
    write_json(folder / f"{name}{SCENARIOS}", results.scenarios)
    path = folder / f"{name}{JUDGED}"
    write_json(path, document)
    return path


def sources(root: Path, name: str, engine: Engine) -> dict[str, str]:
    """Return the current hashes of all that decides the verdicts."""
    modern = load_modern(root).decisive(include={"tiers", "studies"})
    replaced = modern["studies"].get(name)
    return input_hashes(root, name, engine, tiers=modern["tiers"], replaced=replaced)


def modern_results(root: Path, data: Path) -> list[dict[str, Any]]:
    """Return the current result of each study, in the order of their names."""
    paths = sorted((data / "regions" / "modern_kernel").glob(f"*{JUDGED}"))
    return [
        document
        for document in map(read_json, paths)
        if modern_studies(root, [document["study"]], [document["engine"]])
        if is_same(data, document["input_hashes"], partial(sources, root, document["study"]))
    ]
