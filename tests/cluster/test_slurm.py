"""Quick saxena through a real Slurm of one node: same bytes, killed jobs, a killed submission."""

import os
import signal
import subprocess
import time

import pandas as pd
import pytest

from tests.cluster.slurm import running
from tests.workflow.project import ROOT, copy_project

SETTINGS = {"tier": "quick", "studies": "saxena", "engines": "ns3"}
VERDICTS = [f"data/reproduced/{name}.csv" for name in ("cells", "claims", "audit")]
SAME = [f"data/reproduced/results/saxena/{t}.parquet" for t in ("flows", "series")] + VERDICTS
PROFILE = (
    *("--workflow-profile", "workflow/profiles/slurm"),
    # This cluster keeps no accounts; and a test need not wait.
    *("--slurm-status-command", "squeue", "--slurm-no-account"),
    *("--seconds-between-status-checks", "2", "--slurm-init-seconds-before-status-checks", "2"),
)
#: CPU seconds of a job, so that quick saxena makes several.
SEVERAL = 6
#: At the head of the script that simulates: the first to start has its job killed under it.
ASSASSIN = """\
import os, pathlib, subprocess, time
try:
    pathlib.Path("killed").mkdir()
except FileExistsError:
    pass
else:
    subprocess.run(["scancel", "--signal=KILL", "--full", os.environ["SLURM_JOB_ID"]])
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def cluster():
    with running() as slurm:
        yield slurm


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """Return a project in which quick saxena has run without a cluster."""
    project = copy_project(tmp_path_factory.mktemp("local") / "project", engines_from=ROOT)
    project.snakemake(*VERDICTS, **SETTINGS)
    return project


@pytest.fixture
def project(local, tmp_path):
    return copy_project(tmp_path / "project", engines_from=local.root)


def submit(project, cluster, *targets, **config):
    """Start Snakemake with the profile on the cluster; return its process."""
    return subprocess.Popen(
        project.command(*targets, options=PROFILE, **SETTINGS, **config),
        cwd=project.root,
        env=cluster.environment(project.environment()),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process):
    output, _ = process.communicate()
    assert process.returncode == 0, output[-6000:]
    return output


def assert_same(project, local):
    for path in SAME:
        assert (project.root / path).read_bytes() == (local.root / path).read_bytes(), path


def batches(project):
    design = pd.read_csv(project.root / "data/reproduced/design/saxena.csv")
    return design["batch"].nunique()


def test_the_whole_run_gives_the_same_bytes_as_without_a_cluster(project, local, cluster):
    before = len(cluster.jobs())
    finish(submit(project, cluster, "all"))
    assert_same(project, local)
    assert (project.root / "reports/html/saxena.html").stat().st_size > 2000
    jobs = cluster.jobs()[before:]
    assert len(jobs) == batches(project) == 1
    assert {state for _, state in jobs} == {"COMPLETED"}


def test_a_job_killed_on_its_node_is_tried_again(project, local, cluster):
    script = project.root / "workflow/scripts/simulate_batch.py"
    script.write_text(ASSASSIN + script.read_text())
    before = len(cluster.jobs())
    output = finish(submit(project, cluster, *VERDICTS, batch_cost_s=SEVERAL))
    assert (project.root / "killed").is_dir()
    assert "Trying to restart job" in output
    # Slurm calls the killed one COMPLETED too: scancel's signal is no exit code of its script.
    assert len(cluster.jobs()[before:]) == batches(project) + 1 > 2
    assert_same(project, local)


def test_a_killed_submission_is_resumed_without_running_a_scenario_again(project, local, cluster):
    process = submit(project, cluster, *VERDICTS, batch_cost_s=SEVERAL)
    while len(project.finished_runs()) < 5:
        assert process.poll() is None, process.stdout.read()[-6000:]
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    done = project.finished_runs()
    assert not (project.root / SAME[0]).exists()
    # What was submitted goes on; its nodes write beside those of the second submission.
    project.snakemake(options=["--unlock"])
    finish(submit(project, cluster, *VERDICTS, batch_cost_s=SEVERAL))
    assert_same(project, local)
    assert project.finished_runs().items() >= done.items()
