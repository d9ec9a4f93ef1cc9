"""The runner: a program's environment, its limits, and reports of how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from replication.base.errors import RunError
from replication.engines.input_file import INPUT_FILE
from replication.simulate.process import Limits, network_is_isolated
from replication.simulate.runtime import Launch, find_image, make_runtime, native

from tests.unit.conftest import ROOT, missing_from

AMPLE = Limits(memory_bytes=2**30, time_s=20.0)
HEAD = "from __future__ import annotations\nimport json, os, resource, sys, time\n"


def shell(script, folder):
    command = ["/bin/sh", "-c", script]
    runtime = native(Path(command[0]), AMPLE)
    try:
        return runtime.run_command(command, folder, str(folder))
    finally:
        runtime.close()


@pytest.fixture
def python_program(tmp_path):
    """Return a function that writes a program from main's lines; executing the file would fail."""

    def make(lines):
        program = tmp_path / "engine" / "replicate-it"
        (program.parent / "program").mkdir(parents=True)
        body = "".join(f"    {line}\n" for line in lines.splitlines())
        text = f"{HEAD}def main(words: list[str]) -> int:\n{body}"
        (program.parent / "program" / "command.py").write_text(text, encoding="utf-8")
        program.write_text("#!/bin/sh\necho executed >&2\nexit 9\n", encoding="utf-8")
        program.chmod(0o755)
        return program

    return make


def run(program, work, limits=AMPLE):
    """Run a program and return what it used."""
    runtime = native(program, limits)
    try:
        work.mkdir()
        return runtime.run(work)
    finally:
        runtime.close()


def test_a_run_reports_its_own_usage(tmp_path):
    usage = shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done", tmp_path)
    assert 0 < usage.cpu_s <= usage.wall_s + 0.05
    # The peak starts with that of the small forking process.
    assert 100_000 < usage.peak_memory_bytes < psutil.Process().memory_info().rss / 4


@pytest.fixture
def podman(tmp_path, monkeypatch):
    """Return a function that puts a podman first on the path, with these lines of shell."""

    def make(lines):
        program = tmp_path / "bin" / "podman"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{lines}\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    return make


@pytest.mark.parametrize("command", ["run", "build"])
def test_podman_gets_the_limits_of_the_caller(podman, command):
    podman('echo "$@"')
    script = f"ulimit -n 300; ulimit -u 200; {ROOT}/containers/podman {command} --rm image"
    words = subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout.split()
    assert words[words.index(command) :] == [
        command,
        "--ulimit=nofile=300:300",
        "--ulimit=nproc=200:200",
        "--rm",
        "image",
    ]


def test_a_failing_crun_is_reported_in_one_line_with_a_remedy(podman, tmp_path):
    podman('[ "$1" = image ] && echo abc && exit; echo "Error: crun: hybrid mode" >&2; exit 126')
    find_image.cache_clear()
    runtime = make_runtime(ROOT, Launch("podman", "ns3"), tmp_path)
    with pytest.raises(RunError) as caught:
        runtime.run_command(["true"], tmp_path, "/work")
    find_image.cache_clear()
    assert not missing_from(caught.value, "crun: hybrid mode", "apt-get install runc")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("lines", "remedy"),
    [
        ("echo 'Error: no such host' >&2; exit 125", "containers/base podman"),
        (
            '[ "$1" = image ] && exit; echo "Error: crun: hybrid mode" >&2; exit 126',
            "apt-get install runc",
        ),
    ],
)
def test_an_image_that_cannot_be_built_is_reported_in_one_line_with_a_remedy(podman, lines, remedy):
    podman(lines)
    command = [f"{ROOT}/containers/build", "podman", "ns3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert remedy in done.stderr


def test_a_program_ends_with_the_job_that_started_it(tmp_path):
    job = os.fork()
    if job == 0:
        shell("echo $$ > pid; sleep 60", tmp_path)
        os._exit(0)
    deadline = time.monotonic() + 20
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(job, signal.SIGKILL)
    os.waitpid(job, 0)
    program = int((tmp_path / "pid").read_text())
    while psutil.pid_exists(program):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_run_has_no_network_and_no_privileges(tmp_path):
    if not network_is_isolated():
        pytest.fail("this kernel refuses user namespaces: enable kernel.unprivileged_userns_clone")
    shell("tail -n +3 /proc/net/dev > devices; cat /proc/self/status > status", tmp_path)
    devices = (tmp_path / "devices").read_text().splitlines()
    assert [line.split(":")[0].strip() for line in devices] == ["lo"]
    text = (tmp_path / "status").read_text()
    status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert int(status["CapEff"], 16) == 0
    assert status["NoNewPrivs"] == "1"


def test_a_forked_program_has_the_arguments_environment_and_limits_of_a_started_one(
    python_program, tmp_path, monkeypatch
):
    monkeypatch.setenv("SECRET", "of the caller")
    program = python_program(
        "print('lost')\n"
        "seen = {'words': words, 'folder': os.getcwd(), 'environment': dict(os.environ),\n"
        "        'read': sys.stdin.read(), 'open': sorted(map(int, os.listdir('/proc/self/fd'))),\n"
        "        'memory': resource.getrlimit(resource.RLIMIT_AS)[0],\n"
        "        'core': resource.getrlimit(resource.RLIMIT_CORE)[0],\n"
        "        'privileges': open('/proc/self/status').read().count('NoNewPrivs:\\t1')}\n"
        "open('seen', 'w').write(json.dumps(seen))\n"
        "return 0"
    )
    work = tmp_path / "work"
    used = run(program, work)
    seen = json.loads((work / "seen").read_text(encoding="utf-8"))
    assert seen["words"] == ["--input", f"{work}/{INPUT_FILE}", "--output", str(work)]
    assert seen["folder"] == str(work)
    assert seen["environment"] == {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(work)}
    assert seen["read"] == ""
    assert len(seen["open"]) == 4  # including that of the listing
    assert (seen["memory"], seen["core"], seen["privileges"]) == (2**30, 0, 1)
    assert (work / "stderr.txt").read_text(encoding="utf-8") == ""
    assert used.cpu_s < 5 and used.peak_memory_bytes > 2**20


@pytest.mark.parametrize(
    ("lines", "facts"),
    [
        ("print('it: no room', file=sys.stderr)\nreturn 2", ("exit code 2", "it: no room")),
        ("raise ValueError('a defect')", ("exit code 1", "ValueError: a defect")),
        ("bytearray(2**31)", ("exit code 1", "MemoryError", "memory_limit_bytes")),
        ("os.kill(os.getpid(), 15)", ("signal 15",)),
        ("time.sleep(60)", ("time_limit_s",)),
    ],
)
def test_each_failure_of_a_forked_program_is_reported(python_program, tmp_path, lines, facts):
    with pytest.raises(RunError) as caught:
        run(python_program(lines), tmp_path / "work", limits=Limits(2**30, 2.0))
    assert not missing_from(caught.value, *facts)
