"""The pipeline: changes that rerun a rule, and settings for a cluster."""

import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from replication.design import input_hashes, plan
from replication.design.notebook_names import LECTURES, WRITTEN_FOR
from replication.design.pipeline import Pipeline

from tests.unit.conftest import ROOT

SETTINGS = {"tier": "quick", "studies": "nishitha", "engines": "ns3"}


def edited(path):
    path.open("a").write("\n")


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """Return a copy of the package, whose code is hashed."""
    package = shutil.copytree(input_hashes.PACKAGE, tmp_path / "replication")
    monkeypatch.setattr("replication.design.input_hashes.PACKAGE", package)
    input_hashes.code.cache_clear()
    yield package
    input_hashes.code.cache_clear()


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("study/scenario.py", {"simulate", "judge"}),
        ("design/design.py", {"simulate", "judge"}),
        ("compare/agreement.py", {"judge"}),
        ("report/templates/base.html", {"report"}),
        ("cli/main.py", set()),
    ],
)
def test_a_change_of_code_changes_the_hashes_of_the_steps_that_use_it(copied, path, keys):
    before = input_hashes.code()
    edited(copied / path)
    input_hashes.code.cache_clear()
    after = input_hashes.code()
    names = input_hashes.Code._fields
    assert {name for name in names if getattr(before, name) != getattr(after, name)} == keys


def test_notebooks_of_the_report_run_live_if_the_tier_says_so():
    assert Pipeline.load(ROOT, SETTINGS | {"tier": "paper"}).live_program
    assert not Pipeline.load(ROOT, SETTINGS).live_program


def test_batches_are_named_by_the_code_that_decides_their_tables(copied):
    before = set(Pipeline.load(ROOT, SETTINGS).plan.batches)
    more = SETTINGS | {"studies": "nishitha,saxena", "engines": "ns3,ns2"}
    assert before < set(Pipeline.load(ROOT, more).plan.batches)
    edited(copied / "simulate/run.py")
    input_hashes.code.cache_clear()
    assert before.isdisjoint(Pipeline.load(ROOT, SETTINGS).plan.batches)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A project with a stored plan; the function loads it and returns how often it was made."""
    for name in ("configs", "data/published"):
        shutil.copytree(ROOT / name, tmp_path / name)
    made = []
    make = plan.batch_cost
    monkeypatch.setattr(plan, "batch_cost", lambda *given: made.append(1) or make(*given))

    def load():
        return Pipeline.load(tmp_path, SETTINGS).plan, len(made)

    return tmp_path, load


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("configs/studies/nishitha/claims.yaml", edited),
        ("configs/tiers/quick.yaml", edited),
        ("data/published/nishitha.csv", edited),
        (plan.KEPT, Path.unlink),
        (plan.KEPT, lambda path: path.write_bytes(path.read_bytes()[:1000])),
    ],
)
def test_a_plan_is_made_again_if_its_inputs_changed_or_its_file_is_damaged(kept, name, change):
    root, load = kept
    first, _ = load()
    assert load() == (first, 1)
    change(root / name)
    assert load()[1] == 2
    assert load()[1] == 2


def executed(**settings):
    return {path.stem for path in Pipeline.load(ROOT, {"engines": "ns3"} | settings).executed()}


def test_lectures_across_studies_are_executed_with_the_studies_that_they_read():
    assert set(LECTURES) <= executed(tier="quick")
    assert executed(tier="quick", studies="saxena") & set(LECTURES) == {"ecn", "your_paper"}
    assert executed(tier="quick", studies="nishitha") & set(LECTURES) == {*LECTURES} - {"bbr"}
    syllabus = (ROOT / "notebooks/README.md").read_text()
    written = re.findall(r"(?m)^\| \d+\. .*?\[`(\w+)`\]", syllabus)
    assert len(written) == 10 and {*WRITTEN_FOR, *LECTURES} - {"your_paper"} == set(written)


def test_the_slurm_profile_plans_larger_batches_with_their_resources():
    quick = Pipeline.load(ROOT, SETTINGS)
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--forceall", "--nolock"]
    command += ["--workflow-profile", str(ROOT / "workflow/profiles/slurm")]
    command += ["--config", *(f"{name}={value}" for name, value in SETTINGS.items())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (_, job) = (done.stdout + done.stderr).split("rule simulate_batch:\n")
    resources = job.split("resources:")[1].partition("\n")[0]
    granted = dict(re.findall(r"\b(runtime|mem_mb)=(\d+)", resources))
    cost_s = sum(batch.cost_s for batch in quick.plan.batches.values())
    expected_min = math.ceil((2 * cost_s + quick.config.time_limit_s) / 60)
    assert granted == {"runtime": str(expected_min), "mem_mb": str(quick.memory_mb)}
