"""Quick saxena through a real Slurm of one node: the same bytes as without it."""

import subprocess

import pandas as pd

from tests.cluster.slurm import running
from tests.workflow.project import ROOT, copy_project

SETTINGS = {"tier": "quick", "studies": "saxena", "engines": "ns3"}
VERDICTS = [f"data/reproduced/{name}.csv" for name in ("cells", "claims", "audit")]
SAME = [f"data/reproduced/results/saxena/{t}.parquet" for t in ("flows", "series")] + VERDICTS
PROFILE = (
    "--workflow-profile=workflow/profiles/slurm",
    # This cluster keeps no accounts; and a test need not wait.
    "--slurm-status-command=squeue",
    "--slurm-no-account",
    "--seconds-between-status-checks=2",
    "--slurm-init-seconds-before-status-checks=2",
)


def test_a_run_on_slurm_gives_the_same_bytes_as_without_a_cluster(tmp_path):
    local = copy_project(tmp_path / "local", engines_from=ROOT)
    local.snakemake(*VERDICTS, **SETTINGS)
    project = copy_project(tmp_path / "project", engines_from=local.root)
    with running() as cluster:
        done = subprocess.run(
            project.command("all", options=PROFILE, **SETTINGS),
            cwd=project.root,
            env=cluster.environment(project.environment()),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-6000:]
        jobs = cluster.jobs()
    for path in SAME:
        assert (project.root / path).read_bytes() == (local.root / path).read_bytes(), path
    assert (project.root / "reports/html/saxena.html").stat().st_size > 2000
    design = pd.read_csv(project.root / "data/reproduced/design/saxena.csv")
    assert len(jobs) == design["batch"].nunique() == 1
    assert {state for _, state in jobs} == {"COMPLETED"}
