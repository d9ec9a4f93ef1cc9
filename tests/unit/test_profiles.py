"""Profiles: what goes to a cluster, with which resources, in batches of which size."""

import math
import re
import subprocess
import sys
from pathlib import Path

import yaml
from replication.design.config import load_config, load_tier
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


def test_the_clusters_batches_take_minutes_and_are_a_valid_setting():
    given = yaml.safe_load((PROFILES / "slurm" / "settings.yaml").read_text(encoding="utf-8"))
    config = load_config(ROOT / "configs" / "config.yaml", given)
    assert config.batch_cost_s >= 120
    tiers = [load_tier(ROOT, path.stem) for path in (ROOT / "configs" / "tiers").glob("*.yaml")]
    assert all(tier.batch_cost_s < config.batch_cost_s for tier in tiers)


def dry_run(*words):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "snakemake", "--dry-run", "--forceall", "--nolock"),
            *("--config", "tier=quick", "studies=saxena", "engines=ns3", *words),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


def test_only_simulations_go_to_the_cluster():
    sources = [ROOT / "Snakefile", *(ROOT / "workflow" / "rules").glob("*.smk")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    _, *rules = re.split(r"^(?=use rule |rule )", text, flags=re.MULTILINE)
    names = {re.match(r"(?:use rule \w+ as|rule) (\w+)", rule)[1]: rule for rule in rules}
    assert {name for name, rule in names.items() if "localrule: True" not in rule} == SIMULATIONS


def test_the_slurm_profile_plans_larger_batches_with_their_resources():
    quick = Pipeline.load(ROOT, {"tier": "quick", "studies": "saxena", "engines": "ns3"})
    text = dry_run("--workflow-profile", str(PROFILES / "slurm"))
    (_, job) = text.split("rule simulate_batch:\n")
    granted = dict(
        re.findall(r"\b(runtime|mem_mb)=(\d+)", job.split("resources:")[1].split("\n")[0])
    )
    cost_s = sum(batch.cost_s for batch in quick.batches.values())
    expected_min = math.ceil((2 * cost_s + quick.config.time_limit_s) / 60)
    assert granted == {"runtime": str(expected_min), "mem_mb": str(quick.memory_mb)}
