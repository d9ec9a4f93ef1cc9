"""Profiles: what goes to a cluster, with which resources, in batches of which size."""

import math
import re
import subprocess
import sys
from pathlib import Path

from replication.design.pipeline import Pipeline

ROOT = Path(__file__).parents[2]
PROFILES = ROOT / "workflow" / "profiles"
SIMULATIONS = {
    "simulate_batch",
    "simulate_heavy_batch",
    "explore_study",
    "explain_study",
    "explore_map",
    "judge_today",
}


def test_only_simulations_go_to_the_cluster():
    sources = [ROOT / "Snakefile", *(ROOT / "workflow" / "rules").glob("*.smk")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    _, *rules = re.split(r"^(?=use rule |rule )", text, flags=re.MULTILINE)
    names = {re.match(r"(?:use rule \w+ as|rule) (\w+)", rule)[1]: rule for rule in rules}
    assert {name for name, rule in names.items() if "localrule: True" not in rule} == SIMULATIONS


def test_the_slurm_profile_plans_larger_batches_with_their_resources():
    quick = Pipeline.load(ROOT, {"tier": "quick", "studies": "saxena", "engines": "ns3"})
    snakemake = (sys.executable, "-m", "snakemake", "--dry-run", "--forceall", "--nolock")
    settings = ("--config", "tier=quick", "studies=saxena", "engines=ns3")
    done = subprocess.run(
        [*snakemake, *settings, "--workflow-profile", str(PROFILES / "slurm")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    (_, job) = (done.stdout + done.stderr).split("rule simulate_batch:\n")
    granted = dict(
        re.findall(r"\b(runtime|mem_mb)=(\d+)", job.split("resources:")[1].split("\n")[0])
    )
    cost_s = sum(batch.cost_s for batch in quick.batches.values())
    expected_min = math.ceil((2 * cost_s + quick.config.time_limit_s) / 60)
    assert granted == {"runtime": str(expected_min), "mem_mb": str(quick.memory_mb)}
