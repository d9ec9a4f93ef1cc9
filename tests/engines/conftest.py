"""Run scenarios on the engines that `make engines` has built."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # pytest imports by file here

from engine_bench import TRAITS, Bench, Invoke, Run, write_plan
from engine_recovery import RTT_S, SEGMENT, VARIANTS
from engine_results import Result, read_result
from engine_scenarios import listed, single_link
from replication.engines.ns3 import NS3_VERSION, Prefix, installed
from replication.plan.config import Paths

from tests.workflow.project import ROOT, program


def invoker(program: Path) -> Invoke:
    """Return a function that calls an engine's program with any arguments."""

    def invoke(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [str(program), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False, **options)

    return invoke


def runner(engine: str, invoke: Invoke, folders: pytest.TempPathFactory) -> Run:
    """Return a function that runs a scenario (a dict) and reads back what was written."""

    def run(scenario: dict[str, Any], *, trace: bool = False, **options: Any) -> Result:
        folder = folders.mktemp("run")
        output, trace_path = folder / "out", folder / "trace.csv"
        words = ["--plan", write_plan(folder, engine, scenario), "--output", output]
        done = invoke(*words, *(["--trace", trace_path] if trace else []), **options)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return read_result(output, trace_path if trace else None)

    return run


def linked_ns3() -> Prefix:
    """Return the ns-3 that the engine is linked to: what NS3_PREFIX names, or the wheel."""
    return installed(NS3_VERSION) or Prefix.find(ROOT / Paths().ns3_wheel(NS3_VERSION))


@pytest.fixture(scope="session")
def ns3_program() -> Path:
    """Return the ns3 engine's program."""
    return program("ns3")


@pytest.fixture(scope="session")
def invoke_ns3(ns3_program: Path) -> Invoke:
    """Return a function that calls the ns3 engine's program with any arguments."""
    return invoker(ns3_program)


@pytest.fixture(scope="session")
def run_ns3(invoke_ns3: Invoke, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs a scenario (a dict) on ns3 and reads back what was written."""
    return runner("ns3", invoke_ns3, tmp_path_factory)


@pytest.fixture(scope="session")
def ns2_program() -> Path:
    """Return the ns2 engine's program."""
    return program("ns2")


@pytest.fixture(scope="session")
def invoke_ns2(ns2_program: Path) -> Invoke:
    """Return a function that calls the ns2 engine's program with any arguments."""
    return invoker(ns2_program)


@pytest.fixture(scope="session")
def run_ns2(invoke_ns2: Invoke, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs a scenario (a dict) on ns2 and reads back what was written."""
    return runner("ns2", invoke_ns2, tmp_path_factory)


@pytest.fixture(scope="session")
def linux_program() -> Path:
    """Return the linux engine's program."""
    return program("linux")


@pytest.fixture(scope="session")
def invoke_linux(linux_program: Path) -> Invoke:
    """Return a function that calls the linux engine's program with any arguments."""
    return invoker(linux_program)


@pytest.fixture(scope="session")
def run_linux(invoke_linux: Invoke, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs a scenario (a dict) on linux and reads back what was written."""
    return runner("linux", invoke_linux, tmp_path_factory)


@pytest.fixture(scope="session", params=list(TRAITS))
def bench(request: pytest.FixtureRequest) -> Bench:
    """Return each engine in turn."""
    name = request.param
    parts = (
        request.getfixturevalue(f) for f in (f"{name}_program", f"invoke_{name}", f"run_{name}")
    )
    return Bench(name, *parts)


@pytest.fixture(scope="session")
def recover(bench: Bench) -> Run:
    """Return a function that runs a variant through a list of lost data packets (cached)."""
    known: dict[tuple[object, ...], Result] = {}

    def run(variant: str, *lost: int, **changes: object) -> Result:
        key = (variant, lost, tuple(changes.items()))
        if key not in known:
            settings = VARIANTS.get(variant, {"congestion_control": variant})
            control = str(settings["congestion_control"])
            flow = bench.tcp("t", control, initial_ssthresh_bytes=12 * SEGMENT)
            flow |= settings | changes
            scenario = single_link(
                [flow], rate_bps=8e6, delay_s=RTT_S / 2, duration_s=5, loss=listed(*lost)
            )
            known[key] = bench.run(scenario, trace=True)
        return known[key]

    return run
