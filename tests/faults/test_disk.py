"""A full disk and folders that cannot be written, in mount namespaces of their own."""

import shlex
import subprocess

import pytest

from tests.faults.conftest import CORES, STUDY, TARGET, brief_project, results_of

#: Where the room ends: what a stage writes to. Each run gets one stage further than the last.
STAGES = {"store": 64, "batches": 4, "results": 4, "evaluation": 4}
NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")


@pytest.fixture(scope="module")
def project(undisturbed, tmp_path_factory):
    return brief_project(tmp_path_factory.mktemp("disk") / "project", undisturbed[0].root)


def run_where(project, mounts):
    """Run Snakemake in a namespace in which shell commands `mounts` were run before."""
    command = shlex.join(project.command(TARGET, cores=CORES, **STUDY))
    return subprocess.run(
        [*NAMESPACE, "sh", "-ec", f"{mounts}\nexec {command}"],
        cwd=project.root,
        env=project.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_a_full_disk_stops_each_stage_with_a_word_and_is_resumed(project, undisturbed, tally):
    title = "a disk that is full when a stage writes"
    for folder, size_kib in STAGES.items():
        path = project.root / "data/reproduced" / folder
        path.mkdir(parents=True, exist_ok=True)
        # Not empty: Snakemake would remove the folder of a failed job's outputs, a mount point.
        mounted = f"mount -t tmpfs -o size={size_kib}k none {path}; touch {path}/.keep"
        with tally.trial("faults", "full-disk", title) as trial:
            full = run_where(project, mounted)
            trial.refused(full, "No space left on device: make room", "with room")
    with tally.trial("faults", "full-disk", title) as trial:
        project.snakemake(TARGET, cores=CORES, **STUDY)
        trial.right(results_of(project) == results_of(undisturbed[0]), "other bytes")


@pytest.mark.parametrize("folder", ["."])
def test_a_folder_that_cannot_be_written_is_said(folder, project, tally):
    path = project.root / folder
    path.mkdir(parents=True, exist_ok=True)
    (project.root / TARGET).unlink(missing_ok=True)
    results = project.root / "data/reproduced/results/nishitha/flows.parquet"
    results.unlink(missing_ok=True)
    with tally.trial("faults", "read-only", "a folder that cannot be written") as trial:
        locked = f"mount --bind {path} {path}; mount -o remount,ro,bind {path}; cd {project.root}"
        trial.refused(run_where(project, locked), "Read-only file system", "make it writable")
