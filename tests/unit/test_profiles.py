"""Profiles: what goes to a cluster, with which resources, in batches of which size."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from replication.config import load_config, load_tier
from replication.errors import InputError
from replication.pipeline import WORKER_MB, Pipeline

ROOT = Path(__file__).parents[2]
PROFILES = ROOT / "workflow" / "profiles"


@pytest.fixture(scope="module")
def quick():
    return Pipeline.load(ROOT, {"tier": "quick", "studies": "saxena", "engines": "ns3"})


def test_the_clusters_batches_take_minutes_and_are_a_valid_setting():
    given = yaml.safe_load((PROFILES / "slurm" / "settings.yaml").read_text(encoding="utf-8"))
    config = load_config(ROOT / "configs" / "config.yaml", given)
    assert config.batch_cost_s >= 120
    tiers = [load_tier(ROOT, path.stem) for path in (ROOT / "configs" / "tiers").glob("*.yaml")]
    assert all(tier.batch_cost_s < config.batch_cost_s for tier in tiers)


@pytest.mark.parametrize("cost", [0, -1, "long"])
def test_a_batch_cost_that_is_none_is_refused(cost):
    with pytest.raises(InputError, match="batch_cost_s"):
        load_config(ROOT / "configs" / "config.yaml", {"batch_cost_s": cost})


def test_a_command_given_the_selection_plans_the_same_batches(quick):
    words = quick.selection.split()
    options = dict(zip(words[::2], words[1::2], strict=True))
    again = Pipeline.load(
        ROOT,
        {
            "tier": options["--tier"],
            "engines": options["--engines"],
            "batch_cost_s": float(options["--batch-cost-s"]),
            "studies": "saxena",
        },
    )
    assert again.batches.keys() == quick.batches.keys()


def test_a_job_may_take_twice_its_cost_and_one_run_its_limit(quick):
    for name, batch in quick.batches.items():
        granted_s = 60 * quick.runtime_min(name)
        least_s = 2 * batch.cost_s + quick.config.time_limit_s
        assert least_s <= granted_s < least_s + 60


def test_a_job_gets_the_memory_of_one_run_and_of_its_own_worker(quick):
    assert quick.memory_mb == math.ceil(quick.config.memory_limit_bytes / 2**20) + WORKER_MB


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


def rules_of(text):
    """Return the rule of each job, and whether it runs where Snakemake does."""
    heads = [line.strip(":") for line in text.splitlines() if line.endswith(":")]
    return {h.split()[1]: h.startswith("local") for h in heads if h.split()[0].endswith("rule")}


def test_only_simulations_go_to_the_cluster():
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="needs make setup-slurm")
    text = dry_run("--workflow-profile", str(PROFILES / "slurm"))
    assert {rule for rule, local in rules_of(text).items() if not local} == {"simulate_batch"}
    assert f"mem_mb={4096 + WORKER_MB}" in text


def test_the_default_profile_plans_the_tiers_own_batches(quick):
    text = dry_run("--workflow-profile", str(PROFILES / "default"))
    assert all(f"batches/{name}.flows.parquet" in text for name in quick.batches)
