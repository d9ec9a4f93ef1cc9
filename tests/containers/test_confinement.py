"""What a simulator can see and do in a container: its scenario's folder, and nothing else."""

import os
import subprocess
import sys
import time

import pytest
from replication.engines.image import find_image
from replication.run.container import WORK, Container
from replication.run.process import Limits
from replication.study.errors import RunError

from tests.containers.conftest import ENGINES, ROOT, RUNTIMES

AMPLE = Limits(memory_bytes=2**30, time_s=60.0)


@pytest.fixture(params=RUNTIMES)
def container(request, tmp_path):
    runtime = request.getfixturevalue(request.param)
    (tmp_path / "run").mkdir()
    made = Container(runtime, find_image(ROOT, runtime, ENGINES[0]), ENGINES[0], tmp_path)
    yield made
    made.close()


def shell(container, script, limits=AMPLE):
    """Run a script in the container's run folder; return the answer."""
    request = {"command": ["/bin/sh", "-c", script], "work": f"{WORK}/run"}
    limit = {"memory_bytes": limits.memory_bytes, "time_s": limits.time_s}
    answer = container._started(limits).ask(request | limit, limits)
    assert "error" not in answer, answer
    return answer


def test_no_network_no_privileges_and_the_callers_id(container, tmp_path):
    shell(container, "tail -n +3 /proc/net/dev > devices; cat /proc/self/status > status")
    lines = (tmp_path / "run" / "devices").read_text().splitlines()
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]
    text = (tmp_path / "run" / "status").read_text()
    status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert int(status["CapEff"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    assert (tmp_path / "run" / "status").stat().st_uid == os.getuid()


def test_only_the_runs_folder_can_be_written(container, tmp_path):
    for path in ("/written", "/opt/written", "/usr/written", "/etc/written"):
        assert shell(container, f"touch {path}")["status"] != 0
    assert shell(container, "touch written")["status"] == 0
    assert (tmp_path / "run" / "written").is_file()


def test_the_checkout_and_the_callers_variables_are_not_seen(container, tmp_path, monkeypatch):
    monkeypatch.setenv("REPLICATION_SECRET", "x")
    shell(container, f"env > environment; ls {ROOT} > checkout 2>&1")
    assert "REPLICATION_SECRET" not in (tmp_path / "run" / "environment").read_text()
    assert "Snakefile" not in (tmp_path / "run" / "checkout").read_text()


def test_there_is_no_compiler(container):
    script = "for c in cc gcc g++ make ld as; do command -v $c && exit 1; done; exit 0"
    assert shell(container, script)["status"] == 0


def test_a_hang_and_a_greedy_run_are_stopped(container, tmp_path):
    assert shell(container, "sleep 60", Limits(2**30, 0.5))["status"] == -9
    greedy = "x=a; while :; do x=$x$x; done"
    assert shell(container, greedy, Limits(2**27, 20.0))["status"] != 0
    with pytest.raises(RunError, match="replicate-"):
        container.run(tmp_path / "run", AMPLE, lambda: None)  # there is no plan


def test_the_container_is_gone_when_its_job_is_killed(podman, tmp_path):
    (tmp_path / "run").mkdir()
    script = (
        "import sys; sys.path[:0] = sys.argv[3:]\n"
        "from pathlib import Path\n"
        "from tests.containers.test_confinement import *\n"
        "image = find_image(ROOT, 'podman', sys.argv[1])\n"
        "shell(Container('podman', image, sys.argv[1], Path(sys.argv[2])), 'touch up; sleep 50')\n"
    )
    words = [sys.executable, "-c", script, ENGINES[0], tmp_path, ROOT, ROOT / "workflow"]
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
