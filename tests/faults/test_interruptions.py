"""A study whose run is killed: resumed, it ends in the bytes of an undisturbed run."""

import contextlib
import os
import random
import shutil
import signal
import time

import psutil
import pytest

from tests.workflow.project import brief_project

STUDY = {"tier": "brief", "studies": "nishitha"}
TARGET = "data/reproduced/cells.csv"
RESULTS = ("results/nishitha/flows.parquet", "results/nishitha/series.parquet")
RESULTS += ("cells.csv", "claims.csv", "self_consistency.csv", "audit.csv")


def results_of(project):
    """Return the bytes of a run's results."""
    return {path: (project.root / "data/reproduced" / path).read_bytes() for path in RESULTS}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return a project in which one study ran to its end without a fault, and its wall seconds."""
    project = brief_project(tmp_path_factory.mktemp("undisturbed") / "project")
    project.snakemake("engines", **STUDY)
    started = time.monotonic()
    project.snakemake(TARGET, **STUDY)
    return project, time.monotonic() - started


@pytest.fixture(scope="module")
def victim(undisturbed, tmp_path_factory):
    return brief_project(tmp_path_factory.mktemp("victim") / "project", undisturbed[0].root)


def forget(project):
    """Remove all results of a run except the engines' programs."""
    shutil.rmtree(project.root / ".snakemake", ignore_errors=True)
    made = project.root / "data/reproduced"
    for path in [path for path in made.iterdir() if path.name != "engines"]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def find(process, kind):
    """Return a running process of that kind below Snakemake, or None."""
    word = {"batch": "simulate_batch.py", "simulator": "--input"}[kind]
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            # Not the shell that starts the batch, whose command is one word.
            if child.name() not in ("sh", "bash") and word in " ".join(child.cmdline()):
                return child
    return None


def kill(project, kind, moment_s):
    """Run, kill `kind` at the moment or as soon as there is one; return whether there was."""
    with (project.root / "output.txt").open("wb") as output:
        process = psutil.Popen(
            project.command(TARGET, **STUDY),
            cwd=project.root,
            env=project.environment(),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    until = time.monotonic() + moment_s
    while process.poll() is None:
        time.sleep(0.002)
        if time.monotonic() < until:
            continue
        if kind == "everything":
            os.killpg(process.pid, signal.SIGKILL)
        elif kind == "snakemake":
            process.kill()
        elif chosen := find(process, kind):
            chosen.kill()
        else:
            continue
        process.wait()
        return True
    return False


@pytest.mark.parametrize("kind", ["everything", "snakemake", "batch", "simulator"])
def test_a_killed_run_resumes_and_gives_the_same_bytes(kind, victim, undisturbed):
    whole, took_s = undisturbed
    rng = random.Random(kind)
    # A batch or a simulator is there in the first half of the run.
    share = 1 if kind in ("everything", "snakemake") else 0.5

    def killed():
        forget(victim)
        return kill(victim, kind, share * rng.random() * took_s)

    assert any(killed() for _ in range(10)), f"there was never a {kind} to kill"
    output = (victim.root / "output.txt").read_text()
    assert "Traceback" not in output, output[-3000:]
    if list(victim.root.glob(".snakemake/locks/*")):
        refused = victim.snakemake(TARGET, check=False, **STUDY)
        assert refused.returncode != 0 and "unlock" in refused.stdout
        victim.snakemake(options=["--unlock"])
    finished = victim.finished_runs()
    victim.snakemake(TARGET, cores=3, **STUDY)
    assert results_of(victim) == results_of(whole), "other bytes"
    assert victim.finished_runs().items() >= finished.items(), "a finished run was run again"
    left = list((victim.root / "data").rglob(".*@*"))
    assert not left, "what a killed job left is there"
