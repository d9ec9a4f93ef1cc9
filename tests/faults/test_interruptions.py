"""A study whose run is killed, or has no room: resumed, it ends in the bytes of an undisturbed run.

The runs are those of a tier that takes seconds; the room is that of mount namespaces.
"""

import contextlib
import os
import random
import shlex
import shutil
import signal
import subprocess
import time

import psutil
import pytest

from tests.workflow.project import ROOT, copy_project

STUDY = {"tier": "brief", "studies": "nishitha"}
TIER = """\
id: brief
title: a few short runs in several batches
replicates: [{count: 1}]
levels: quick
cost_limit_s: 0.1
batch_cost_s: 0.7
"""
TARGET = "data/reproduced/cells.csv"
RESULTS = ("results/nishitha/flows.parquet", "results/nishitha/series.parquet")
RESULTS += ("cells.csv", "claims.csv", "self_consistency.csv", "audit.csv")
#: Where the room ends: what a stage writes to. Each run gets one stage further than the last.
STAGES = {"store": 64, "batches": 4, "results": 4, "evaluation": 4}


def results_of(project):
    """Return the bytes of what a run makes."""
    return {path: (project.root / "data/reproduced" / path).read_bytes() for path in RESULTS}


def brief_project(folder, engines_from=ROOT):
    """Return a copy of the project that has the tier of these tests, and engines if built."""
    project = copy_project(folder, engines_from)
    (folder / "configs/tiers/brief.yaml").write_text(TIER)
    return project


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
    """Remove all that a run has made but for the engines' programs."""
    shutil.rmtree(project.root / ".snakemake", ignore_errors=True)
    made = project.root / "data/reproduced"
    for path in [path for path in made.iterdir() if path.name != "engines"]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def find(process, kind):
    """Return a running process of that kind below Snakemake, or None."""
    word = {"batch": "simulate_batch.py", "simulator": "--plan"}[kind]
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            # Not the shell that starts the batch, whose words are one.
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
def test_a_killed_run_resumes_to_the_same_bytes(kind, victim, undisturbed):
    whole, took_s = undisturbed
    rng = random.Random(kind)
    # A batch or a simulator is there in the first half of the run.
    share = 1 if kind in ("everything", "snakemake") else 0.5

    def killed():
        forget(victim)
        return kill(victim, kind, share * rng.random() * took_s)

    assert any(killed() for _ in range(10)), f"there was never a {kind} to kill"
    said = (victim.root / "output.txt").read_text()
    assert "Traceback" not in said, said[-3000:]
    if list(victim.root.glob(".snakemake/locks/*")):
        refused = victim.snakemake(TARGET, check=False, **STUDY)
        assert refused.returncode != 0 and "unlock" in refused.stdout
        victim.snakemake(options=["--unlock"])
    finished = victim.finished_runs()
    victim.snakemake(TARGET, cores=3, **STUDY)
    assert results_of(victim) == results_of(whole), "other bytes"
    assert victim.finished_runs().items() >= finished.items(), "a finished run was run again"


def failure_where(project, before, after="true"):
    """Return what Snakemake says that fails in a mount namespace, between two shell commands."""
    command = shlex.join(project.command(TARGET, **STUDY))
    script = f"set -e; {before}; set +e; {command}; code=$?; {after}; exit $code"
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        cwd=project.root,
        env=project.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode > 0 and "Traceback" not in done.stdout, done.stdout[-3000:]
    return done.stdout


def test_a_full_disk_stops_each_stage_in_one_line_and_is_resumed(victim, undisturbed):
    forget(victim)
    data, whole = (one.root / "data/reproduced" for one in (victim, undisturbed[0]))
    for folder, size_kib in STAGES.items():
        path, left = data / folder, data / "left"
        path.mkdir(parents=True, exist_ok=True)
        # Not empty: Snakemake would remove the folder of a failed job's outputs, a mount point.
        mount = f"mount -t tmpfs -o size={size_kib}k none {path}; touch {path}/.keep"
        said = failure_where(victim, mount, f"cp -r {path} {left}")
        assert "No space left on device: make room" in said, said[-3000:]
        for file in [*left.rglob("*.parquet"), *left.rglob("[!.]*.csv")]:
            same = whole / folder / file.relative_to(left)
            assert folder == "store" or file.read_bytes() == same.read_bytes(), "half-written"
        shutil.rmtree(left)
    victim.snakemake(TARGET, **STUDY)
    assert results_of(victim) == results_of(undisturbed[0]), "other bytes"


def test_a_folder_that_cannot_be_written_is_named(victim):
    root = victim.root
    (root / TARGET).unlink(missing_ok=True)
    lock = f"mount --bind {root} {root}; mount -o remount,ro,bind {root}; cd {root}"
    said = failure_where(victim, lock)
    assert "Read-only file system" in said or "make it writable" in said, said[-3000:]
