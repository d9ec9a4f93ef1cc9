"""Conformance: runs the canonical scenarios on an engine and holds them against what is expected.

An engine is judged by its own results alone; what one engine is to show beside another (loss
recovery) is judged when the engines' tables are put together.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from replication.compare.conformance_model import Check, Conformance
from replication.compare.conformance_quantity import QUANTITIES, ObservedRun
from replication.compare.conformance_recovery import compare, named, recovery_numbers, windows
from replication.engines.catalogue import ENGINES
from replication.engines.lowering import write_inputs
from replication.engines.model import Engine
from replication.run.process import Limits
from replication.run.runtime import Launch, Runtime, make_runtime
from replication.study.errors import InputError, RunError
from replication.study.files import write_text
from replication.study.scenario import Scenario, TcpFlow
from replication.study.storage.table import (
    CONFORMANCE_COLUMNS,
    RECOVERY_COLUMNS,
    WINDOW_COLUMNS,
    read_frame,
)

#: What one run of a canonical scenario may use; the largest takes a second.
LIMITS = Limits(memory_bytes=4 * 2**30, time_s=120.0)


@dataclass(frozen=True)
class Runner:
    """An engine's program, ready to run scenarios in folders below `work`."""

    engine: Engine
    version: str
    runtime: Runtime
    work: Path

    @classmethod
    def of(cls, name: str, runtime: Runtime, fingerprint: str, work: Path) -> Runner:
        """Return the runner of an engine."""
        version = ENGINES[name].exact_version(runtime.written_version(), fingerprint)
        return cls(ENGINES[name], version, runtime, work)

    def run(self, scenario: Scenario) -> ObservedRun:
        """Run `scenario`.

        Raises
        ------
        RunError
            It failed; the message names the scenario.
        """
        folder = self._start(scenario)
        texts = {"flow": "string", "link": "string", "kind": "string"}
        flows = pd.read_csv(folder / "flows.csv", dtype=texts).set_index("flow")
        series = pd.read_csv(folder / "series.csv", dtype=texts)
        return ObservedRun(scenario, flows, series.fillna({"flow": "", "link": ""}))

    def trace(self, scenario: Scenario) -> tuple[pd.DataFrame, float]:
        """Run `scenario` with its only flow's events; return them and its goodput in bit/s."""
        folder = self._start(scenario, trace=True)
        goodput = pd.read_csv(folder / "flows.csv")["goodput_bps"].iloc[0]
        return pd.read_csv(folder / "trace.csv"), float(goodput)

    def _start(self, scenario: Scenario, trace: bool = False) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="run.", dir=self.work))
        write_inputs(folder, scenario, self.engine)
        try:
            self.runtime.run(folder, trace)
        except RunError as error:
            raise RunError(f"conformance, scenario {scenario.id}: {error}") from None
        return folder


def run_checks(document: Conformance, runner: Runner) -> pd.DataFrame:
    """Return a row for each check: observed beside expected, or why the engine refuses it."""
    runs: dict[str, ObservedRun] = {}
    rows = []
    for check in document.checks:
        scenarios = {n: document.scenario(n, runner.engine.name) for n in check.scenarios}
        refusals = [r for s in scenarios.values() if (r := runner.engine.refusal(s))]
        if refusals:
            rows.append(_refused(document, check, runner, refusals[0]))
            continue
        for name, scenario in scenarios.items():
            if name not in runs:
                runs[name] = runner.run(scenario)
        rows.append(judge(document, check, runner, [runs[name] for name in check.scenarios]))
    return pd.DataFrame(rows, columns=list(CONFORMANCE_COLUMNS))


def judge(
    document: Conformance, check: Check, runner: Runner, runs: Sequence[ObservedRun]
) -> dict[str, Any]:
    """Return the row of a check whose scenarios were run."""
    engine = runner.engine.name
    expectation = check.expectation(engine)
    observed = QUANTITIES[check.quantity].measure(runs, check.after_s)
    within = math.isfinite(observed) and expectation.low <= observed <= expectation.high
    return _row(document, check, runner) | {
        "observed": observed,
        "deviation": observed - expectation.expected,
        "within": "true" if within else "false",
        "note": named(document.deviation(check.id, engine)),
    }


def _row(document: Conformance, check: Check, runner: Runner) -> dict[str, Any]:
    expectation = check.expectation(runner.engine.name)
    return {
        "check": check.id,
        "engine": runner.engine.name,
        "engine_version": runner.version,
        "quantity": check.quantity,
        "unit": QUANTITIES[check.quantity].unit,
        "expected": expectation.expected,
        "low": expectation.low,
        "high": expectation.high,
        "source": f"{expectation.source}; tolerance: {expectation.tolerance}",
    }


def _refused(document: Conformance, check: Check, runner: Runner, refusal: str) -> dict[str, Any]:
    return _row(document, check, runner) | {"within": "refused", "note": refusal}


def run_recovery(document: Conformance, runner: Runner) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the numbers and the windows of the recoveries; empty if the engine has no part."""
    recovery, engine = document.recovery, runner.engine.name
    numbers: list[tuple[Any, ...]] = []
    parts: list[pd.DataFrame] = []
    for variant in recovery.variants if engine in (recovery.subject, recovery.reference) else ():
        for losses in recovery.losses:
            scenario = document.recovery_scenario(variant, losses, engine)
            if refusal := runner.engine.refusal(scenario):
                raise InputError(f"recovery: {variant} on {engine}: {refusal}; name another engine")
            trace, goodput = runner.trace(scenario)
            (flow,) = [flow for flow in scenario.flows if isinstance(flow, TcpFlow)]
            found = recovery_numbers(trace, goodput, flow.segment_bytes)
            key = (variant, losses, engine)
            numbers += [(*key, runner.version, q, found[q]) for q in recovery.quantities]
            labels = dict(zip(WINDOW_COLUMNS, key, strict=False))
            parts.append(windows(trace, flow.segment_bytes).assign(**labels))
    frame = pd.concat(parts) if parts else pd.DataFrame(columns=list(WINDOW_COLUMNS))
    return pd.DataFrame(numbers, columns=list(RECOVERY_COLUMNS)), frame[list(WINDOW_COLUMNS)]


def run_conformance(
    document: Conformance, root: Path, launch: Launch, fingerprint: str, output: Path
) -> None:
    """Run every check on an engine; write its rows, recoveries and windows.

    Parameters
    ----------
    document
        What is to be shown.
    root, launch
        The project's folder, and what is to be started.
    fingerprint
        The engine's, for the version that the tables name.
    output
        ``<engine>.csv``; ``<engine>.recovery.csv`` and ``<engine>.cwnd.csv`` go beside it.
    """
    with tempfile.TemporaryDirectory(prefix="conformance.") as work:
        runtime = make_runtime(root, launch, Path(work), LIMITS)
        try:
            runner = Runner.of(launch.engine, runtime, fingerprint, Path(work))
            rows = run_checks(document, runner)
            numbers, frame = run_recovery(document, runner)
        finally:
            runtime.close()
    write_frame(rows, output)
    write_frame(numbers, output.with_suffix(".recovery.csv"))
    write_frame(frame, output.with_suffix(".cwnd.csv"))


def merge_conformance(document: Conformance, engines: Sequence[str], folder: Path) -> None:
    """Put the tables of ``<folder>/conformance`` together and compare the engines' recoveries."""
    parts = folder / "conformance"

    def read(engine: str, end: str, **types: type) -> pd.DataFrame:
        return read_frame(parts / f"{engine}{end}", dtype=types)

    rows = [read(engine, ".csv", within=str) for engine in engines]
    numbers = pd.concat([read(engine, ".recovery.csv") for engine in engines])
    frames = [read(engine, ".cwnd.csv") for engine in engines]
    compared = compare(document, numbers)
    write_frame(pd.concat([*rows, compared]), folder / "conformance.csv")
    write_frame(pd.concat(frames), folder / "conformance_cwnd.csv")


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write `frame` as CSV, numbers with nine digits."""
    write_text(path, frame.to_csv(index=False, float_format="%.9g"))
