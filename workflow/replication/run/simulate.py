"""Simulate: reads the scenarios of a batch and runs them into the store, one process each."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from replication.engines.catalogue import ENGINES
from replication.run.launcher import Launch, make_runtime
from replication.run.process import Limits
from replication.run.run_table import RunTables, check_run
from replication.run.runtime import Runtime
from replication.run.store import Store
from replication.study.errors import InputError, RunError, describe, describe_refusal
from replication.study.files import REMEDY, read_json, read_text
from replication.study.scenario import Scenario

_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Job:
    """The scenarios of a batch, and what is needed to run them."""

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


def designed_batch(design: Path, batch: str) -> tuple[str, dict[str, Scenario]]:
    """Return engine and scenarios of a batch of `design`, a study's table of runs.

    Raises
    ------
    InputError
        The design or its scenarios are missing or malformed, or the design has no such batch.
    """
    rows = _rows(design, batch)
    if not rows:
        raise InputError(f"{design}: has no batch {batch}; {REMEDY}")
    path = design.parent / "scenarios" / f"{design.stem}.json"
    return rows[0]["engine"], _scenarios(path, {row["scenario"] for row in rows})


def read_batch(path: Path) -> tuple[str, dict[str, Scenario]]:
    """Return engine and scenarios of a batch that has a file of its own.

    Raises
    ------
    InputError
        The file is missing or malformed, or a scenario's content does not match its id.
    """
    document = read_json(path)
    try:
        return str(document["engine"]), _validated(path, document["scenarios"])
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: is not a batch file ({error}); {REMEDY}") from None


def _rows(design: Path, batch: str) -> list[dict[str, str]]:
    """Return the rows of a batch; those of the others, most of them, are not looked into."""
    lines = enumerate(read_text(design).splitlines())
    table = csv.DictReader(line for number, line in lines if number == 0 or batch in line)
    missing = {"scenario", "engine", "batch"}.difference(table.fieldnames or [])
    if missing:
        raise InputError(f"{design}: has no column {', '.join(sorted(missing))}; {REMEDY}")
    return [row for row in table if row["batch"] == batch]


def _scenarios(path: Path, wanted: Set[str]) -> dict[str, Scenario]:
    """Return the `wanted` ones of a design's scenarios; the others, most of them, stay text.

    They stand in the order of their ids, so that the text is gone through once. No key of a
    scenario looks like an id.
    """
    found: dict[str, Any] = {}
    text, end = read_text(path), 0
    try:
        for name in sorted(wanted):
            key = f'"{name}":'
            start = text.find(key, end)
            if start >= 0:
                found[name], end = _DECODER.raw_decode(text, start + len(key))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: is not JSON ({error}); {REMEDY}") from None
    lacking = sorted(wanted - set(found))
    if lacking:
        raise InputError(f"{path}: has no scenario {lacking[0]}; {REMEDY}")
    return _validated(path, found)


def _validated(path: Path, documents: Any) -> dict[str, Scenario]:
    try:
        scenarios = {k: Scenario.model_validate(v) for k, v in documents.items()}
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}") from None
    except AttributeError as error:
        raise InputError(f"{path}: holds no scenarios ({error}); {REMEDY}") from None
    for name, scenario in scenarios.items():
        if scenario.id != name:
            raise InputError(f"{path}: scenario {name} has content {scenario.id}; {REMEDY}")
    return scenarios


@dataclass(frozen=True)
class Finished:
    """A finished run: what it used, and its tables if they were read just now (else none)."""

    usage: dict[str, Any]
    tables: RunTables


def run_job(job: Job, progress: Callable[[], None]) -> dict[str, Finished]:
    """Run what is not yet in the store and pack it; return all scenarios in order of their ids.

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
    job.store.pack(finished)
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
