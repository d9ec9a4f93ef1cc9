"""The native runtime: confined, limited, and plain about what went wrong."""

import os
from pathlib import Path

import psutil
import pytest
from replication.run.native import Native
from replication.run.process import Limits, network_is_isolated
from replication.study.errors import RunError

AMPLE = Limits(memory_bytes=2**30, time_s=20.0)


def start(command, folder, limits):
    native = Native(Path(command[0]))
    try:
        return native.runner.run(command, limits, (folder, str(folder)), lambda: None)
    finally:
        native.close()


def shell(script, tmp_path, limits=AMPLE):
    return start(["/bin/sh", "-c", script], tmp_path, limits)


def test_it_says_what_a_run_used(tmp_path):
    usage = shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done", tmp_path)
    assert 0 < usage.cpu_s <= usage.wall_s + 0.05
    assert usage.peak_memory_bytes > 100_000


def test_a_failure_carries_exit_code_and_last_words(tmp_path):
    with pytest.raises(RunError, match="exit code 3: the last line"):
        shell("echo first >&2; echo 'the last line' >&2; exit 3", tmp_path)


def test_a_hang_is_killed_and_named(tmp_path):
    with pytest.raises(RunError, match=r"time_limit_s = 0\.3"):
        shell("sleep 30", tmp_path, Limits(memory_bytes=2**30, time_s=0.3))


def test_memory_is_limited(tmp_path):
    script = "x=a; while :; do x=$x$x; done"
    with pytest.raises(RunError):
        shell(script, tmp_path, Limits(memory_bytes=2**27, time_s=20.0))


def test_a_program_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RunError, match="/no/such/program: cannot start"):
        start(["/no/such/program"], tmp_path, AMPLE)


def test_a_peak_is_not_that_of_what_started_the_run(tmp_path):
    used = shell("exit 0", tmp_path)
    assert 100_000 < used.peak_memory_bytes < psutil.Process().memory_info().rss / 4


def test_a_runner_that_was_killed_is_said_and_started_again(tmp_path):
    native = Native(Path("/bin/sh"))
    script = "test -e again || { touch again; kill -9 $PPID; sleep 30; }"
    run = [["/bin/sh", "-c", script], AMPLE, (tmp_path, str(tmp_path)), lambda: None]
    with pytest.raises(RunError, match="runner: it ended without a word"):
        native.runner.run(*run)
    assert native.runner.run(*run).wall_s < 20
    native.close()


def test_a_run_has_no_network_and_no_privileges(tmp_path):
    if not network_is_isolated():
        pytest.fail("this kernel refuses user namespaces: enable kernel.unprivileged_userns_clone")
    shell("tail -n +3 /proc/net/dev > devices; cat /proc/self/status > status", tmp_path)
    devices = [
        line.split(":")[0].strip() for line in (tmp_path / "devices").read_text().splitlines()
    ]
    assert devices == ["lo"]
    status = dict(
        line.split(":\t", 1)
        for line in (tmp_path / "status").read_text().splitlines()
        if ":\t" in line
    )
    assert int(status["CapEff"], 16) == 0
    assert status["NoNewPrivs"] == "1"


def test_a_run_sees_no_variables_of_ours(tmp_path):
    os.environ["REPLICATION_SECRET"] = "x"
    shell("env > environment", tmp_path)
    assert "REPLICATION_SECRET" not in (tmp_path / "environment").read_text()
