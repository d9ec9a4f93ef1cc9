"""SIGKILL at random moments of a run: resumed, it ends in the bytes of an undisturbed run."""

import os
import random
import shutil
import signal
import subprocess
import time

import psutil
import pytest

from tests.faults.conftest import (
    CORES,
    STUDY,
    TARGET,
    brief_project,
    number,
    results_of,
    set_clock_back,
)

MOMENTS = number("MOMENTS", 4)
#: What is killed; of a batch and a simulator, the first one that runs from the moment on.
VICTIMS = ("everything", "snakemake", "batch", "simulator")
SEED = 20260107


@pytest.fixture(scope="module")
def victim(undisturbed, tmp_path_factory):
    return brief_project(tmp_path_factory.mktemp("victim") / "project", undisturbed[0].root)


def forget(project):
    """Remove all that a run has made but for the engines' programs."""
    shutil.rmtree(project.root / ".snakemake", ignore_errors=True)
    for path in (project.root / "data/reproduced").iterdir():
        if path.name != "engines":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def find(process, kind):
    """Return a running process of that kind below Snakemake, or None."""
    word = {"batch": "simulate", "simulator": "--plan"}[kind]
    for child in process.children(recursive=True):
        try:
            words = child.cmdline()
        except psutil.Error:
            continue
        # A shell that only starts the batch has its words in one.
        if (word in words and "python" in child.name() + words[0]) or word in words[1:2]:
            return child
    return None


def kill(project, kind, moment_s):
    """Run, kill `kind` at the moment or as soon as there is one; return whether there was."""
    with (project.root / "output.txt").open("wb") as output:
        process = psutil.Popen(
            project.command(TARGET, cores=CORES, **STUDY),
            cwd=project.root,
            env=project.environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
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
        elif (chosen := find(process, kind)) is not None:
            chosen.kill()
        else:
            continue
        process.wait()
        return True
    return False


@pytest.mark.parametrize("number_", range(MOMENTS))
def test_a_killed_run_resumes_to_the_same_bytes(number_, victim, undisturbed, tally):
    whole, took_s = undisturbed
    rng = random.Random(SEED + number_)
    kind = VICTIMS[number_ % len(VICTIMS)]
    for _ in range(10):
        forget(victim)
        # A batch or a simulator is there in the first half of the run.
        share = rng.random() * (1 if kind in ("everything", "snakemake") else 0.5)
        if kill(victim, kind, share * took_s):
            break
    else:
        pytest.fail(f"there was never a {kind} to kill")
    named = f"kill-{kind}", f"SIGKILL of {kind} at a random moment"
    back = number_ % 3 == 2
    if back:
        set_clock_back(victim)
        named = "kill-clock", "SIGKILL at a random moment, and the clock set back before the resume"
    with tally.trial("faults", *named) as trial:
        said = (victim.root / "output.txt").read_text()
        assert "Traceback" not in said, said[-3000:]
        if list((victim.root / ".snakemake/locks").glob("*")):
            refused = victim.snakemake(TARGET, check=False, cores=CORES, **STUDY)
            assert refused.returncode != 0
            assert "unlock" in refused.stdout
            subprocess.run(
                ["snakemake", "--unlock", "--cores", "1", "--config", "engines=ns3"],
                cwd=victim.root,
                env=victim.environment(),
                check=True,
                capture_output=True,
            )
        if back:
            # Snakemake finds new files older than what they are made of, and stops.
            skewed = victim.snakemake(TARGET, check=False, cores=CORES, **STUDY)
            assert skewed.returncode == 0 or "clock skew" in skewed.stdout, skewed.stdout[-3000:]
            for path in (victim.root / "data/reproduced").rglob("*"):
                os.utime(path, follow_symlinks=False)
        victim.snakemake(TARGET, cores=CORES, **STUDY)
        trial.right(results_of(victim) == results_of(whole), "other bytes")
