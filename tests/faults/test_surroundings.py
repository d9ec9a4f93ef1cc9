"""A damaged cache, a clock set back, two runs in one folder, odd folders, no network."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from replication.engines.catalogue import NS3
from replication.engines.lowering import write_inputs
from replication.run.folder import require_plain_name
from replication.run.gather import collect
from replication.run.native import Native
from replication.run.process import Limits
from replication.study.errors import InputError, RunError
from replication.study.scenario import Scenario

from tests.faults.conftest import (
    CORES,
    ROOT,
    STUDY,
    TARGET,
    brief_project,
    results_of,
    set_clock_back,
)
from tests.faults.hostile import MARK
from tests.unit.test_models import minimal_scenario
from tests.workflow.project import program

#: Snakemake's names for what a run holds.
LOCKS = {"0.input.lock", "0.output.lock"}
PLAIN = ("dir", "a_b", "v1.2", "x@y", "tmp~1", "ü")
ODD = (
    "a b",
    f"$(touch {MARK})",
    f"`touch {MARK}`",
    "a'b",
    'a"b',
    "a;b",
    "a&b",
    "a\nb",
    "a\\b",
    "a:b",
)


@pytest.fixture(scope="module")
def project(undisturbed, tmp_path_factory):
    """Return a copy of the finished project, results and all."""
    copy = tmp_path_factory.mktemp("copy") / "project"
    shutil.copytree(undisturbed[0].root, copy, symlinks=True)
    return type(undisturbed[0])(copy)


def broken_engine(folder, part):
    """Return a copy of the built ns-3 program of which a part is cut off after its first half."""
    built = program("ns3").resolve()
    copy = folder / "replicate-ns3"
    shutil.copy2(built, copy)
    damaged = copy
    if part == "library":
        linked = subprocess.check_output(["ldd", built], text=True)
        library = next(
            Path(line.split("=>")[1].split(" (")[0].strip())
            for line in linked.splitlines()
            if "core" in line
        )
        # The program looks beside itself first, as the tests of other users do.
        damaged = folder / library.name
        shutil.copy2(library, damaged)
    with damaged.open("r+b") as file:
        file.truncate(damaged.stat().st_size // 2)
    return copy


@pytest.mark.parametrize("part", ["program", "library"])
def test_a_damaged_engine_is_said(part, tmp_path, tally, monkeypatch):
    scenario = Scenario.model_validate(minimal_scenario())
    broken = broken_engine(tmp_path, part)
    work = tmp_path / "work"
    write_inputs(work, scenario, NS3)
    if part == "library":  # what a runtime path gives, for a copy elsewhere
        wrapper = tmp_path / "wrapper"
        wrapper.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={tmp_path} exec {broken} "$@"\n')
        wrapper.chmod(0o755)
        broken = wrapper
    with tally.trial("faults", "damaged-cache", "a damaged program, library or result") as trial:
        native = Native(broken)
        with trial.refusal(RunError, "remove data/reproduced/engines"):
            native.run(work, Limits(2**30, 20.0), lambda: None)
        native.close()


@pytest.mark.parametrize("damage", ["cut", "empty", "garbage", "gone"])
def test_a_damaged_part_of_the_results_is_said(damage, undisturbed, tmp_path, tally):
    part = next((undisturbed[0].root / "data/reproduced/batches").glob("*.flows.parquet"))
    broken = tmp_path / "batches" / part.name
    broken.parent.mkdir()
    content = part.read_bytes()
    if damage != "gone":
        cut = {"cut": content[: len(content) // 2], "empty": b"", "garbage": b"x" * 999}
        broken.write_bytes(cut[damage])
    with tally.trial("faults", "damaged-cache", "a damaged program, library or result") as trial:
        with trial.refusal((InputError, RunError), rf"{part.name}: .*[;:] remove it"):
            collect([part, broken], tmp_path / "all.parquet", ["scenario", "flow"])
        assert not (tmp_path / "all.parquet").exists()


def test_a_source_edited_after_the_clock_was_set_back_is_not_stale(project, tally):
    set_clock_back(project)
    title = "results from the future, after the clock was set back, and a source edited since"
    edits = {
        "data/published/nishitha.csv": {"evaluate_study"},
        "configs/studies/nishitha.yaml": {"evaluate_study", "design_study"},
        "configs/tiers/brief.yaml": {"design_study"},
    }
    with tally.trial("faults", "clock", title) as trial:
        trial.right(project.jobs(TARGET, **STUDY) == {}, "an unchanged run would run again")
    for name, rules in edits.items():
        file = project.root / name
        before = file.read_bytes()
        file.write_bytes(before + b"\n")
        with tally.trial("faults", "clock", title) as trial:
            trial.right(rules <= project.jobs(TARGET, **STUDY).keys(), f"{name}: stale")
        file.write_bytes(before)


def test_a_second_run_in_the_folder_is_refused_and_the_first_is_right(undisturbed, tmp_path, tally):
    project = brief_project(tmp_path / "project", undisturbed[0].root)
    shutil.copy2(ROOT / "Makefile", project.root)
    first = subprocess.Popen(
        project.command(TARGET, cores=CORES, **STUDY),
        cwd=project.root,
        env=project.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with tally.trial("faults", "together", "a second `make report` in a folder in use") as trial:
        # A lock says which files it is of once it is written to.
        locks = project.root / ".snakemake/locks"
        while not {p.name for p in locks.glob("*") if p.stat().st_size} >= LOCKS:
            assert first.poll() is None
            time.sleep(0.01)
        os.killpg(first.pid, signal.SIGSTOP)  # however quick it is, it holds the folder
        second = subprocess.run(
            [
                *("make", "report", "TIER=brief", "ENGINES=ns3", "STUDIES=nishitha"),
                # In this environment, and the copy's code.
                *("-o", "setup", "-o", "setup-profile"),
                f"RUN=env PYTHONPATH={project.root / 'workflow'}",
            ],
            cwd=project.root,
            env=project.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        os.killpg(first.pid, signal.SIGCONT)
        trial.refused(second, "another run holds")
        assert "make unlock" in second.stderr
        assert first.wait() == 0
        trial.right(results_of(project) == results_of(undisturbed[0]), "other bytes")


@pytest.mark.parametrize("name", ODD)
def test_a_folder_that_a_shell_would_read_is_refused(name, tally):
    title = "a project in a folder with signs in it"
    with (
        tally.trial("faults", "odd-folder", title) as trial,
        trial.refusal(InputError, "move the project"),
    ):
        require_plain_name(Path("/home/u") / name)


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_folder_is_taken(name):
    require_plain_name(Path("/home/u") / name)


def test_a_project_in_an_odd_folder_runs_nothing(tmp_path, tally):
    project = brief_project(tmp_path / f"$(touch {MARK}) 'x'")
    with tally.trial("faults", "odd-folder", "a project in a folder with signs in it") as trial:
        done = project.snakemake(TARGET, check=False, **STUDY)
        trial.refused(done, "move the project")
        assert done.returncode == 2
        assert not list(tmp_path.rglob(MARK))


def test_a_run_needs_no_network_and_no_second_core(undisturbed, tmp_path, tally):
    project = brief_project(tmp_path / "project", undisturbed[0].root)
    title = "a run in an empty network namespace"
    with tally.trial("supply", "no-network", title) as trial:
        done = subprocess.run(
            [
                *("unshare", "--user", "--map-root-user", "--net"),
                *project.command(TARGET, cores=1, **STUDY),
            ],
            cwd=project.root,
            env=project.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        trial.right(results_of(project) == results_of(undisturbed[0]), "other bytes")
