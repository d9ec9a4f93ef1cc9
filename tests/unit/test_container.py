"""Containers: the command lines, the runner's protocol, and what a runtime that is absent says."""

import itertools
import json
import os
import stat
import sys
import time
from pathlib import Path

import pytest
from image_build.build import _build
from replication.engines import ns3_source
from replication.engines.image import COMMANDS, Image, find_image, reference, tag
from replication.plan.pipeline import Pipeline
from replication.run.container import WORK, Container, command_line
from replication.run.inside import find_inside, image_file
from replication.run.launcher import Launch, make_runtime
from replication.run.process import Limits
from replication.study.errors import InputError, RunError
from snakemake_interface_executor_plugins.settings import DeploymentMethod

ROOT = Path(__file__).parents[2]
SETTINGS = {"tier": "quick", "studies": "saxena", "engines": "ns3"}
AMPLE = Limits(memory_bytes=2**30, time_s=20.0)
#: Starts the runner as a container would, but here; {root} stands for what WORK is inside.
HERE = """#!{python}
import json, subprocess, sys
sys.path.insert(0, {workflow!r})
from replication.run import process
from replication.run import runner
runner._has_network = lambda: {network}
def answer(request, refused, ask=runner.answer):
    text = json.dumps(request).replace({inside!r}, {outside!r})
    return ask(json.loads(text) | {{"command": ["/bin/sh", "-c", {script!r}]}}, refused)
runner.answer = answer
runner.main()
"""


def command(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture(autouse=True)
def forget_images():
    """Look for images anew in each test."""
    find_image.cache_clear()


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Put a command of each runtime, which does nothing, first on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, _ in COMMANDS.values():
        command(folder, name, "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.mark.parametrize("runtime", ["docker", "podman"])
def test_docker_and_podman_confine(commands, runtime, tmp_path):
    words = command_line(runtime, "sha256:abc", tmp_path, 2**30)
    assert words[0] == str(commands / runtime)
    assert {
        "--rm",
        "--interactive",
        "--pull=never",
        "--network=none",
        "--read-only",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        f"--user={os.getuid()}:{os.getgid()}",
    } <= set(words)
    assert f"--memory={2**30 + 2**29}" in words
    mounts = [word for word in words if "bind" in word]
    assert mounts == [f"--mount=type=bind,source={tmp_path},target={WORK}"]
    assert words[words.index("sha256:abc") :] == ["sha256:abc", "-ISB", "/opt/replicate/runner"]


def test_rootless_podman_keeps_the_callers_id(commands, tmp_path, monkeypatch):
    monkeypatch.setattr("os.getuid", lambda: 1000)
    assert "--userns=keep-id" in command_line("podman", "x", tmp_path, 1)
    assert "--userns=keep-id" not in command_line("docker", "x", tmp_path, 1)


def test_charliecloud_and_apptainer_confine(commands, tmp_path):
    charliecloud = command_line("charliecloud", "/images/ns3/root", tmp_path, 1)
    assert "--unset-env=*" in charliecloud and "--write" not in charliecloud
    apptainer = command_line("apptainer", "/images/ns3/image.sif", tmp_path, 1)
    assert apptainer[1] == "exec"
    assert {"--containall", "--cleanenv", "--no-privs", "--network=none"} <= set(apptainer)
    for words in (charliecloud, apptainer):
        assert [word for word in words if "bind" in word] == [f"--bind={tmp_path}:{WORK}"]
        assert words[-3:] == ["/usr/bin/python3", "-ISB", "/opt/replicate/runner"]


@pytest.mark.parametrize("runtime", COMMANDS)
def test_a_runtime_that_is_absent_is_named_with_what_to_install(runtime, monkeypatch):
    monkeypatch.setattr("replication.engines.image.shutil.which", lambda command: None)
    with pytest.raises(InputError, match=f"runtime: {runtime} is not installed .*nstall"):
        find_image(ROOT, runtime, "ns3")
    with pytest.raises(InputError, match=f"runtime: {runtime} is not installed"):
        Pipeline.load(ROOT, SETTINGS | {"engines": "available", "runtime": runtime})
    with pytest.raises(InputError, match=f"runtime: {runtime} is not installed"):
        Pipeline.load(ROOT, SETTINGS | {"runtime": runtime})


@pytest.mark.parametrize("runtime", ["docker", "podman"])
def test_an_image_that_is_not_built_is_named_with_the_remedy(commands, runtime):
    command(commands, runtime, "#!/bin/sh\necho 'Error: No such image: x' >&2; exit 1\n")
    with pytest.raises(InputError, match=f"make images IMAGES_WITH={runtime}"):
        find_image(ROOT, runtime, "ns3")


def test_a_daemon_that_does_not_answer_is_told_from_a_missing_image(commands):
    words = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."
    command(commands, "docker", f"#!/bin/sh\necho '{words}' >&2; exit 1\n")
    with pytest.raises(InputError, match="cannot be used: Cannot connect"):
        find_image(ROOT, "docker", "ns3")


def test_an_image_that_is_not_unpacked_is_named_with_the_remedy(commands, tmp_path, monkeypatch):
    monkeypatch.setattr("replication.engines.image.cache", lambda root: tmp_path)
    with pytest.raises(InputError, match="make images UNPACK=charliecloud"):
        find_image(ROOT, "charliecloud", "ns3")
    (tmp_path / f"ns3-{tag(ROOT, 'ns3')}" / "root").mkdir(parents=True)
    (tmp_path / f"ns3-{tag(ROOT, 'ns3')}" / "id").write_text("sha256:abc\n")
    assert find_image(ROOT, "charliecloud", "ns3").id == "sha256:abc"


def test_another_image_than_planned_is_refused(commands, tmp_path):
    command(commands, "podman", f"#!/bin/sh\necho {'a' * 64}\n")
    image = "sha256:" + "a" * 64
    assert make_runtime(ROOT, Launch("podman", "ns3", image=image), tmp_path).record() == {
        "runtime": "podman",
        "image": image,
    }
    with pytest.raises(InputError, match="planned with sha256:b"):
        make_runtime(ROOT, Launch("podman", "ns3", image="sha256:b"), tmp_path)


def test_batches_of_another_runtime_or_image_are_others_with_stores_of_their_own(commands):
    """Snakemake overlooks a changed parameter where it remakes an `ancient` input."""
    batches, launches, others = [], set(), set()
    for settings in ({"runtime": "podman"}, {"runtime": "podman"}, {}):
        command(commands, "podman", f"#!/bin/sh\necho {len(batches)}bbbbbbbbbbbbbbb\n")
        find_image.cache_clear()
        pipeline = Pipeline.load(ROOT, SETTINGS | settings)
        assert pipeline.program_of("ns3") == ([] if settings else [pipeline.program("ns3")])
        batches.append(set(pipeline.batches))
        launches.add(pipeline.launch_of("ns3"))
        others.add(pipeline.store_of("ns3").name)
    assert len(launches) == 3 and len(others) == 3
    assert all(a.isdisjoint(b) for a, b in itertools.combinations(batches, 2))


def test_an_images_name_follows_its_sources(tmp_path):
    before = reference(ROOT, "ns3")
    assert before == reference(ROOT, "ns3")
    assert before != reference(ROOT, "ns2").replace("ns2", "ns3")


def test_an_image_with_ns3_from_its_sources_has_another_name(monkeypatch):
    def names():
        return {name: reference(ROOT, name) for name in ("ns3", "ns2", "linux", "analysis")}

    monkeypatch.delenv("NS3_SOURCE", raising=False)
    monkeypatch.setattr(ns3_source, "built_ns3", lambda root: root / "nowhere")
    wheel = names()
    monkeypatch.setenv("NS3_SOURCE", "ns-3.tar.xz")
    source = names()
    assert {name for name in wheel if wheel[name] != source[name]} == {"ns3", "analysis"}


def stand_in(commands, tmp_path, script, network=False):
    """Return a container whose runtime starts the runner here, on a shell script."""
    outside = tmp_path / "store"
    work = outside / ".run"
    work.mkdir(parents=True)
    text = HERE.format(
        python=sys.executable,
        workflow=str(ROOT / "workflow"),
        network=network,
        inside=f"{WORK}/",
        outside=f"{outside}/",
        script=script,
    )
    command(commands, "podman", text)
    return Container("podman", Image("sha256:abc", "sha256:abc"), "ns3", outside), work


def test_one_container_serves_many_runs_and_says_what_each_used(commands, tmp_path):
    container, work = stand_in(commands, tmp_path, "echo $PPID >> pids")
    for _ in range(3):
        usage = container.run(work, AMPLE, lambda: None)
        assert usage.wall_s > 0 and usage.peak_memory_bytes > 100_000
    container.close()
    assert len(set((work / "pids").read_text().split())) == 1


def test_failures_in_a_container_carry_the_programs_last_words(commands, tmp_path):
    container, work = stand_in(commands, tmp_path, "echo it broke >&2; exit 3")
    with pytest.raises(RunError, match="replicate-ns3 failed: exit code 3: it broke"):
        container.run(work, AMPLE, lambda: None)
    container.close()


def test_a_hang_in_a_container_is_killed_and_named(commands, tmp_path):
    container, work = stand_in(commands, tmp_path, "sleep 30")
    with pytest.raises(RunError, match=r"time_limit_s = 0\.3"):
        container.run(work, Limits(memory_bytes=2**30, time_s=0.3), lambda: None)
    container.close()


def test_a_container_with_a_network_is_refused(commands, tmp_path):
    container, work = stand_in(commands, tmp_path, "true", network=True)
    with pytest.raises(RunError, match="podman: the container has a network"):
        container.run(work, AMPLE, lambda: None)
    container.close()


def test_a_container_that_does_not_start_says_why(commands, tmp_path):
    command(commands, "podman", "#!/bin/sh\necho 'Error: no space left' >&2; exit 125\n")
    container = Container("podman", Image("sha256:abc", "sha256:abc"), "ns3", tmp_path)
    (tmp_path / "run").mkdir()
    with pytest.raises(RunError, match="podman: Error: no space left"):
        container.run(tmp_path / "run", AMPLE, lambda: None)


def test_a_podman_that_needs_runc_is_told_so(commands, tmp_path, monkeypatch):
    said = "error running container: from /usr/bin/crun: cgroups in hybrid mode not supported"
    command(
        commands, "podman", f"#!/bin/sh\necho '{said}' >&2; echo 'Error: exit 1' >&2; exit 125\n"
    )
    container = Container("podman", Image("sha256:abc", "sha256:abc"), "ns3", tmp_path)
    (tmp_path / "run").mkdir()
    with pytest.raises(RunError, match=r'apt-get install runc.* runtime = "runc"'):
        container.run(tmp_path / "run", AMPLE, lambda: None)
    # The same where an image is built.
    (tmp_path / "base").mkdir()
    with pytest.raises(RunError, match=r'apt-get install runc.* runtime = "runc"'):
        _build("podman", tmp_path / "base", "localhost/any", [])


def running(pid):
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False


def test_the_runner_ends_what_it_runs_when_its_job_is_gone(commands, tmp_path):
    container, work = stand_in(commands, tmp_path, "echo $$ > pid; exec sleep 60")
    process = container._started(AMPLE)._start()
    request = {"command": [], "work": f"{WORK}/.run", "memory_bytes": 2**30, "time_s": 60}
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    while not (work / "pid").is_file() or not (work / "pid").read_text().strip():
        assert process.poll() is None
    pid = int((work / "pid").read_text())
    process.stdin.close()
    assert process.wait(timeout=20) == 1
    deadline = time.monotonic() + 20
    while running(pid):
        assert time.monotonic() < deadline


def test_inside_the_analysis_image_its_programs_are_used_and_named(monkeypatch):
    source = f"source:{tag(ROOT, 'analysis')}"
    monkeypatch.setenv("REPLICATION_PROGRAMS", "/opt/replicate")
    monkeypatch.setenv("REPLICATION_IMAGE", source)
    pipeline = Pipeline.load(ROOT, SETTINGS)
    assert pipeline.program_of("ns3") == []
    program = "/opt/replicate/ns3/replicate-ns3"
    assert pipeline.launch_of("ns3") == f"--runtime native --program {program} --image {source}"
    assert pipeline.store_of("ns3").name.endswith(f"@inside-{source[7:]}")
    with pytest.raises(InputError, match="cannot start containers from inside"):
        Pipeline.load(ROOT, SETTINGS | {"runtime": "podman"})


def test_an_analysis_image_of_other_sources_is_refused(monkeypatch):
    monkeypatch.setenv("REPLICATION_PROGRAMS", "/opt/replicate")
    monkeypatch.setenv("REPLICATION_IMAGE", "source:000000000000")
    with pytest.raises(InputError, match="made from other sources"):
        find_inside(ROOT, [])


def test_snakemakes_apptainer_needs_the_image_and_uses_its_programs(tmp_path, monkeypatch):
    monkeypatch.setattr("replication.engines.image.cache", lambda root: tmp_path)
    assert find_inside(ROOT, []) is find_inside(ROOT, [DeploymentMethod.CONDA]) is None
    with pytest.raises(InputError, match="make images UNPACK=apptainer"):
        find_inside(ROOT, [DeploymentMethod.APPTAINER])
    folder = Path(image_file(ROOT)).parent
    folder.mkdir()
    (folder / "id").write_text("sha256:abc\n")
    inside = find_inside(ROOT, [DeploymentMethod.APPTAINER])
    assert inside.image == "sha256:abc"
    assert str(inside.program("ns2")) == "/opt/replicate/ns2/replicate-ns2"
