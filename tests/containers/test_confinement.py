"""In a container a simulator sees only its scenario's folder."""

import json
import os
import subprocess

import pytest
from replication.base.errors import RunError
from replication.simulate.process import Limits
from replication.simulate.runtime import Launch, make_runtime, reference

from tests.containers.conftest import ENGINES, ROOT

AMPLE = Limits(memory_bytes=2**30, time_s=60.0)


def run_shell(folder, script, limits=AMPLE):
    """Run a script in a container, in the folder `run`; return what it ran in."""
    (folder / "run").mkdir(exist_ok=True)
    runtime = make_runtime(ROOT, Launch("podman", ENGINES[0], **vars(limits)), folder)
    try:
        runtime.run_command(["/bin/sh", "-c", script], folder / "run", "/work/run")
    finally:
        runtime.close()
    return folder / "run"


def test_a_run_sees_no_network_checkout_compiler_or_variables(podman, tmp_path, monkeypatch):
    monkeypatch.setenv("REPLICATION_SECRET", "x")
    run = run_shell(
        tmp_path,
        "tail -n +3 /proc/net/dev > devices; cat /proc/self/status > status; env > environment; "
        f"ls {ROOT} > checkout 2>&1; for c in cc gcc g++ make ld as; do command -v $c && exit 1; "
        "done; for f in / /opt /usr /etc; do touch $f/written && exit 1; done; touch written",
    )
    lines = (run / "devices").read_text().splitlines()
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]
    text = (run / "status").read_text()
    status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert int(status["CapEff"], 16) == 0 and status["NoNewPrivs"] == "1"
    assert (run / "status").stat().st_uid == os.getuid()
    assert "REPLICATION_SECRET" not in (run / "environment").read_text()
    assert "Snakefile" not in (run / "checkout").read_text()
    assert (run / "written").is_file()


@pytest.mark.parametrize(
    ("script", "limits", "fact"),
    [
        ("sleep 60", Limits(2**30, 0.5), r"time_limit_s = 0\.5"),
        ("x=a; while :; do x=$x$x; done", Limits(2**27, 20.0), "failed"),
    ],
)
def test_a_run_beyond_its_limit_of_time_or_memory_is_stopped(
    podman, tmp_path, script, limits, fact
):
    with pytest.raises(RunError, match=fact):
        run_shell(tmp_path, script, limits)


def test_images_do_not_run_as_root_and_the_planned_image_is_required(podman, tmp_path):
    command = ["podman", "image", "inspect", reference(ROOT, ENGINES[0])]
    (image,) = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert image["Config"]["User"] == "10000:10000"
    with pytest.raises(ValueError, match="planned with sha256:0"):
        make_runtime(ROOT, Launch("podman", ENGINES[0], image="sha256:0"), tmp_path)
