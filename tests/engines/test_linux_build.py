"""The build: made again from the same kernels it gives the same bytes, and bad calls are named."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.engines.engine_bench import write_plan
from tests.engines.engine_scenarios import cbr, dumbbell, linux_red, linux_tcp

BUILD = Path(__file__).resolve().parents[2] / "workflow" / "engines" / "linux" / "build"


def build(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call the build."""
    command = [str(BUILD), *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | environment
    )


def test_built_again_from_the_cached_kernel_it_is_the_same(
    linux_program: Path, tmp_path: Path
) -> None:
    # As after `make clean`: the folder is gone, the cache is not. (Elsewhere, with another mask.)
    os.umask(before := os.umask(0o077))
    os.umask(0o077)
    try:
        made = build("--output", tmp_path / "a b" / "engine", TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
    finally:
        os.umask(before)
    assert made.returncode == 0, made.stderr
    names = ["initrd", "linux", "replicate-linux", "version"]
    found = sorted(path.name for path in (tmp_path / "a b" / "engine").iterdir())
    assert found == sorted([*names, "program"])
    modules = [
        path.relative_to(linux_program.parent)
        for path in (linux_program.parent / "program").rglob("*.py*")
    ]
    assert len(modules) > 10
    assert all(
        path.stat().st_mode & 0o044 for path in (tmp_path / "a b" / "engine" / "program").rglob("*")
    )
    for name in [*names, *modules]:
        again = (tmp_path / "a b" / "engine" / name).read_bytes()
        assert again == (linux_program.parent / name).read_bytes(), name
    flows = [linux_tcp("t", "bbr", sack=True), cbr("c", 5e5)]
    plan = write_plan(tmp_path, "linux", dumbbell(flows, queue=linux_red(5, 15)))
    runs = []
    for program in (linux_program, tmp_path / "a b" / "engine" / "replicate-linux"):
        output = tmp_path / f"out{len(runs)}"
        command = [program, "--plan", plan, "--output", output]
        subprocess.check_call(command)
        runs.append({path.name: path.read_bytes() for path in output.iterdir()})
    assert runs[0] == runs[1]


def test_each_timer_frequency_has_a_key_of_its_own() -> None:
    keys = build("--hz", "1000,100", "--key").stdout.split()
    assert len(set(keys)) == 3  # 250 is always among them
    assert build("--key").stdout.split() == [keys[1]]


def test_another_source_is_another_kernel(tmp_path: Path) -> None:
    (tmp_path / "source.tar.xz").write_bytes(b"another")
    other = build("--key", REPLICATION_LINUX_SOURCE=str(tmp_path / "source.tar.xz"))
    assert other.stdout != build("--key").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--hz", "128", "--key"], "128"),
        (["--hz", "250", "--what"], "--what"),
        (["--hz", "250"], "--output"),
    ],
)
def test_a_bad_call_is_refused_by_name(words: list[str], said: str) -> None:
    done = build(*words)
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]


def test_a_missing_source_names_the_package(tmp_path: Path) -> None:
    done = build("--check", REPLICATION_LINUX_SOURCE=str(tmp_path / "none.tar.xz"))
    assert done.returncode == 1
    assert "apt-get install linux-source-6.1" in done.stderr
