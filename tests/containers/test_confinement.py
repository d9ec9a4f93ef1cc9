"""What a simulator can see and do in a container: its scenario's folder, and nothing else."""

import json
import os
import subprocess
import sys
import time

import pytest
from replication.simulate.process import Limits
from replication.simulate.runtime import Launch, make_runtime, reference
from replication.study.errors import RunError

from tests.containers.conftest import ENGINES, ROOT

AMPLE = Limits(memory_bytes=2**30, time_s=60.0)


def open_container(folder, limits):
    return make_runtime(ROOT, Launch("podman", ENGINES[0]), folder, limits)


@pytest.fixture
def container(podman, tmp_path):
    """Return a function that runs a script in a container, in the folder `run`."""
    opened = []
    (tmp_path / "run").mkdir()

    def shell(script, limits=AMPLE):
        opened.append(open_container(tmp_path, limits))
        opened[-1].run_command(["/bin/sh", "-c", script], tmp_path / "run", "/work/run")

    yield shell
    for runtime in opened:
        runtime.close()


def test_no_network_no_privileges_and_the_callers_id(container, tmp_path):
    container("tail -n +3 /proc/net/dev > devices; cat /proc/self/status > status")
    lines = (tmp_path / "run" / "devices").read_text().splitlines()
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]
    text = (tmp_path / "run" / "status").read_text()
    status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert int(status["CapEff"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    assert (tmp_path / "run" / "status").stat().st_uid == os.getuid()


def test_only_the_runs_folder_can_be_written(container, tmp_path):
    container("for f in / /opt /usr /etc; do touch $f/written && exit 1; done; touch written")
    assert (tmp_path / "run" / "written").is_file()


def test_the_checkout_and_the_callers_variables_are_not_seen(container, tmp_path, monkeypatch):
    monkeypatch.setenv("REPLICATION_SECRET", "x")
    container(f"env > environment; ls {ROOT} > checkout 2>&1 || true")
    assert "REPLICATION_SECRET" not in (tmp_path / "run" / "environment").read_text()
    assert "Snakefile" not in (tmp_path / "run" / "checkout").read_text()


def test_there_is_no_compiler(container):
    container("for c in cc gcc g++ make ld as; do command -v $c && exit 1; done; exit 0")


def test_a_hang_and_a_greedy_run_are_stopped(container):
    with pytest.raises(RunError, match=r"time_limit_s = 0\.5"):
        container("sleep 60", Limits(2**30, 0.5))
    with pytest.raises(RunError, match="failed"):
        container("x=a; while :; do x=$x$x; done", Limits(2**27, 20.0))


def test_an_image_is_not_roots_and_a_planned_image_is_required(podman, tmp_path):
    command = ["podman", "image", "inspect", reference(ROOT, ENGINES[0])]
    (found,) = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert found["Config"]["User"] == "10000:10000"
    with pytest.raises(ValueError, match="planned with sha256:0"):
        make_runtime(ROOT, Launch("podman", ENGINES[0], image="sha256:0"), tmp_path, AMPLE)


def test_the_container_is_gone_when_its_job_is_killed(podman, tmp_path):
    (tmp_path / "run").mkdir()
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path\n"
        "from tests.containers.test_confinement import *\n"
        "folder = Path(sys.argv[1])\n"
        "command = ['/bin/sh', '-c', 'touch up; sleep 50']\n"
        "open_container(folder, AMPLE).run_command(command, folder / 'run', '/work/run')\n"
    )
    words = [sys.executable, "-c", script, tmp_path, ROOT, ROOT / "workflow"]
    job = subprocess.Popen([str(word) for word in words])
    deadline = time.monotonic() + 30
    while not (tmp_path / "run" / "up").exists():
        assert time.monotonic() < deadline and job.poll() is None
        time.sleep(0.1)
    job.kill()
    job.wait()
    while subprocess.run(["podman", "ps", "-q"], capture_output=True, check=True).stdout:
        assert time.monotonic() < deadline
        time.sleep(0.1)
