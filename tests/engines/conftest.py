"""Run scenarios on the engines that `make engines` has built."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from replication.design.config import Paths
from replication.engines.ns3 import NS3_VERSION, Prefix, installed

from tests.engines.engine_bench import TRAITS, Bench, Invoke, Run, write_plan
from tests.engines.engine_results import RTT_S, SEGMENT, VARIANTS, Result, read_result
from tests.engines.engine_scenarios import listed, single_link
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


def fixtures(engine: str) -> list[Any]:
    """Return the fixtures `<engine>_program`, `invoke_<engine>` and `run_<engine>`."""

    @pytest.fixture(scope="session", name=f"{engine}_program")
    def its_program() -> Path:
        return program(engine)

    @pytest.fixture(scope="session", name=f"invoke_{engine}")
    def invoke(request: pytest.FixtureRequest) -> Invoke:
        return invoker(request.getfixturevalue(f"{engine}_program"))

    @pytest.fixture(scope="session", name=f"run_{engine}")
    def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
        return runner(engine, request.getfixturevalue(f"invoke_{engine}"), tmp_path_factory)

    return [its_program, invoke, run]


ns3_program, invoke_ns3, run_ns3 = fixtures("ns3")
ns2_program, invoke_ns2, run_ns2 = fixtures("ns2")
linux_program, invoke_linux, run_linux = fixtures("linux")


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
