"""What only ns-2 can meet: a SYN lost beside listed losses, a missing or broken simulator."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.engines.engine_bench import write_plan
from tests.engines.engine_scenarios import Json, cbr, listed, single_link, tcp

Invoke = Callable[..., CompletedProcess[str]]


def good() -> Json:
    """Return a scenario that runs."""
    return single_link([tcp("t", "newreno"), cbr("c", 1e5)], duration_s=1)


def test_listed_losses_need_the_syn_to_pass(invoke_ns2: Invoke, tmp_path: Path) -> None:
    # The SYN is dropped by a queue of one packet that a CBR flow keeps full for a while.
    flows = [cbr("c", 4e6, stop_s=0.5), tcp("t", "reno", start_s=0.1)]
    queue = {"kind": "droptail", "limit_packets": 1}
    scenario = single_link(flows, rate_bps=1e6, duration_s=20, queue=queue, loss=listed(1))
    path = write_plan(tmp_path, "ns2", scenario)
    done = invoke_ns2("--plan", path, "--output", tmp_path / "out")
    assert done.returncode == 2
    assert "link wire" in done.stderr and "SYN" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_a_missing_simulator_is_named(invoke_ns2: Invoke, tmp_path: Path) -> None:
    words = ("--plan", write_plan(tmp_path, "ns2", good()), "--output", tmp_path / "out")
    # A folder with what the launcher needs, but no ns.
    done = invoke_ns2(*words, env={"PATH": str(tmp_path)})
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "package ns2" in done.stderr


@pytest.mark.parametrize(
    ("script", "word"), [("exit 7", "7"), ("exit 0", "before the end"), ("echo no >&2", "no")]
)
def test_a_broken_simulator_is_a_defect(
    invoke_ns2: Invoke, tmp_path: Path, script: str, word: str
) -> None:
    (tmp_path / "ns").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "ns").chmod(0o755)
    words = ("--plan", write_plan(tmp_path, "ns2", good()), "--output", tmp_path / "out")
    done = invoke_ns2(*words, env={"PATH": f"{tmp_path}:{os.defpath}"})
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert word in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_a_killed_program_takes_the_simulator_along(ns2_program: Path, tmp_path: Path) -> None:
    scenario = single_link([cbr("c", 1e7)], rate_bps=1e7, duration_s=2000)
    path = write_plan(tmp_path, "ns2", scenario)
    command = [ns2_program, "--plan", path, "--output", tmp_path / "out"]
    process = subprocess.Popen(command)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    simulator = wait_for(lambda: children.read_text().split())[0]
    wait_for(lambda: "ns" in Path(f"/proc/{simulator}/comm").read_text())
    process.kill()
    process.wait()
    wait_for(lambda: not Path(f"/proc/{simulator}").exists() or zombie(simulator))


def wait_for(condition: Callable[[], Any]) -> Any:
    """Return what `condition` gives once it gives something."""
    deadline = time.monotonic() + 10
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def zombie(pid: str) -> bool:
    """Return whether a process has ended, though nobody has asked for its status."""
    return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
