"""A full disk and a folder that cannot be written, in mount namespaces of their own."""

import shlex
import shutil
import subprocess

import pytest

from tests.faults.conftest import STUDY, TARGET, brief_project, results_of

#: Where the room ends: what a stage writes to. Each run gets one stage further than the last.
STAGES = {"store": 64, "batches": 4, "results": 4, "evaluation": 4}


@pytest.fixture(scope="module")
def project(undisturbed, tmp_path_factory):
    return brief_project(tmp_path_factory.mktemp("disk") / "project", undisturbed[0].root)


def failure_where(project, before, after="true"):
    """Return what Snakemake says that fails in a namespace, between two shell commands."""
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


def test_a_full_disk_stops_each_stage_in_one_line_and_is_resumed(project, undisturbed):
    data, whole = (one.root / "data/reproduced" for one in (project, undisturbed[0]))
    for folder, size_kib in STAGES.items():
        path, left = data / folder, data / "left"
        path.mkdir(parents=True, exist_ok=True)
        # Not empty: Snakemake would remove the folder of a failed job's outputs, a mount point.
        mount = f"mount -t tmpfs -o size={size_kib}k none {path}; touch {path}/.keep"
        said = failure_where(project, mount, f"cp -r {path} {left}")
        assert "No space left on device: make room" in said, said[-3000:]
        for file in [*left.rglob("*.parquet"), *left.rglob("[!.]*.csv")]:
            same = whole / folder / file.relative_to(left)
            assert folder == "store" or file.read_bytes() == same.read_bytes(), "half-written"
        shutil.rmtree(left)
    project.snakemake(TARGET, **STUDY)
    assert results_of(project) == results_of(undisturbed[0]), "other bytes"


def test_a_folder_that_cannot_be_written_is_named(project):
    root = project.root
    (root / TARGET).unlink(missing_ok=True)
    lock = f"mount --bind {root} {root}; mount -o remount,ro,bind {root}; cd {root}"
    said = failure_where(project, lock)
    assert "Read-only file system" in said or "make it writable" in said, said[-3000:]
