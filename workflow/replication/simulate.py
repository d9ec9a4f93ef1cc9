"""Simulate: runs the scenarios of a batch, one process each, and gathers their tables."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from replication.engine import ENGINES
from replication.errors import InputError, RunError, describe, describe_refusal
from replication.launcher import Launch, make_runtime
from replication.process import Limits
from replication.run_table import RunTables, check_run
from replication.runtime import Runtime
from replication.scenario import Scenario
from replication.seal import read_sealed, remedy
from replication.store import Store


@dataclass(frozen=True)
class Job:
    """A batch read from its file, and what is needed to run it."""

    engine: str
    runtime: Runtime
    scenarios: dict[str, Scenario]
    store: Store
    limits: Limits


def open_job(
    root: Path, launch: Launch, scenarios: dict[str, Scenario], store: Path, limits: Limits
) -> Job:
    """Return the job that runs `scenarios` into the folder `store`, which is made.

    Raises
    ------
    InputError
        As `make_runtime` does.
    """
    store.mkdir(parents=True, exist_ok=True)
    runtime = make_runtime(root, launch, store.resolve())
    return Job(launch.engine, runtime, scenarios, Store(store.resolve()), limits)


def read_batch(path: Path) -> tuple[str, dict[str, Scenario]]:
    """Return engine and scenarios of a batch file.

    Raises
    ------
    InputError
        The file is missing or malformed, or a scenario's content does not match its id.
    """
    try:
        text = read_sealed(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {remedy(path)}") from None
    try:
        document = json.loads(text)
        engine = str(document["engine"])
        scenarios = {k: Scenario.model_validate(v) for k, v in document["scenarios"].items()}
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: is not a batch file ({error}); {remedy(path)}") from None
    for name, scenario in scenarios.items():
        if scenario.id != name:
            raise InputError(f"{path}: scenario {name} has content {scenario.id}; remove the file")
    return engine, scenarios


@dataclass(frozen=True)
class Finished:
    """A finished run: what it used, and its tables if they were read just now (else none)."""

    usage: dict[str, Any]
    tables: RunTables


def run_job(job: Job, progress: Callable[[], None]) -> dict[str, Finished]:
    """Run what is not yet in the store; return all scenarios in order of their ids.

    Raises
    ------
    RunError
        A run failed or left tables that are not complete; the message names the scenario.
    """
    finished = {}
    try:
        for scenario_id in sorted(job.scenarios):
            stored = job.store.usage(scenario_id)
            run = _run_one(job, scenario_id, progress) if stored is None else Finished(stored, {})
            origin = {"scenario": scenario_id, "engine": job.engine, "reused": stored is not None}
            finished[scenario_id] = Finished(origin | run.usage, run.tables)
            progress()
    finally:
        job.runtime.close()
    return finished


def _run_one(job: Job, scenario_id: str, progress: Callable[[], None]) -> Finished:
    scenario = job.scenarios[scenario_id]
    work = job.store.begin(scenario_id, scenario, ENGINES[job.engine])
    try:
        used = job.runtime.run(work, job.limits, progress)
        tables = check_run(work, scenario)
        usage = job.store.finish(scenario_id, work, used.as_dict() | job.runtime.record())
    except (RunError, OSError) as error:
        refused = describe_refusal(error) if isinstance(error, OSError) else None
        raise RunError(f"scenario {scenario_id} on {job.engine}: {refused or error}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Finished(usage, tables)
