"""Simulate: the scenarios of a batch run into the store, and their tables gathered."""

from __future__ import annotations

import csv
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from replication.engines.catalogue import ENGINES
from replication.simulate.gather import RunTables, check_run, gather
from replication.simulate.process import Limits
from replication.simulate.runtime import Launch, Runtime, make_runtime
from replication.simulate.store import Progress, Store
from replication.study.errors import InputError, RunError, describe, describe_refusal
from replication.study.files import REMEDY, read_text, write_text
from replication.study.scenario import Scenario


@dataclass(frozen=True)
class Job:
    """The scenarios of a batch, and what is needed to run them."""

    engine: str
    runtime: Runtime
    scenarios: dict[str, Scenario]
    store: Store


@dataclass(frozen=True)
class Finished:
    """A finished run: what it used, and its tables if they were read just now (else none)."""

    usage: dict[str, Any]
    tables: RunTables


def open_job(
    root: Path, launch: Launch, scenarios: dict[str, Scenario], store: Path, limits: Limits
) -> Job:
    """Return the job that runs `scenarios` into the folder `store`, which is made."""
    store.mkdir(parents=True, exist_ok=True)
    runtime = make_runtime(root, launch, store.resolve(), limits)
    return Job(launch.engine, runtime, scenarios, Store(store.resolve()))


def run_batch(
    job: Job,
    fingerprint: str,
    usage: Path,
    tables: tuple[Path, Path],
    progress: Progress | None,
) -> None:
    """Run what of a batch is not yet in the store, and write what came of it.

    `fingerprint` is the engine's. Each run's usage goes to the JSON file `usage`, flows and series
    to the Parquet files `tables`.
    """
    version = ENGINES[job.engine].exact_version(job.runtime.written_version(), fingerprint)
    started = time.time()
    finished = run_job(job, progress.tick if progress else lambda: None)
    read = {name: run.tables for name, run in finished.items()}
    gather(job.store, read, job.engine, version, tables)
    document = {
        "engine": job.engine,
        "engine_version": version,
        "started": started,
        "finished": time.time(),
        "runs": [run.usage for run in finished.values()],
    }
    write_text(usage, json.dumps(document) + "\n")
    if progress:
        progress.tick(force=True)


def run_job(job: Job, progress: Callable[[], None]) -> dict[str, Finished]:
    """Run and pack what is not in the store; return all runs by id. RunError names a failed one."""
    finished = {}
    try:
        for scenario_id in sorted(job.scenarios):
            stored = job.store.usage(scenario_id)
            run = _run_one(job, scenario_id) if stored is None else Finished(stored, {})
            origin = {"scenario": scenario_id, "engine": job.engine, "reused": stored is not None}
            finished[scenario_id] = Finished(origin | run.usage, run.tables)
            progress()
    finally:
        job.runtime.close()
    job.store.pack(finished)
    return finished


def _run_one(job: Job, scenario_id: str) -> Finished:
    scenario = job.scenarios[scenario_id]
    work = job.store.begin(scenario_id, scenario, ENGINES[job.engine])
    try:
        used = job.runtime.run(work)
        tables = check_run(work, scenario)
        place = {"runtime": job.runtime.name, "image": job.runtime.image}
        usage = job.store.finish(scenario_id, work, vars(used) | place)
    except (RunError, OSError) as error:
        refused = describe_refusal(error) if isinstance(error, OSError) else None
        raise RunError(f"scenario {scenario_id} on {job.engine}: {refused or error}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Finished(usage, tables)


def designed_batch(design: Path, batch: str) -> tuple[str, dict[str, Scenario]]:
    """Return engine and scenarios of a batch of `design`, a study's table of runs.

    Of a design, which may have ten thousands of runs, only the batch's lines are parsed.
    """
    head, *lines = read_text(design).splitlines() or [""]
    rows = list(csv.DictReader([head, *(line for line in lines if batch in line)]))
    try:
        wanted = {row["scenario"]: row["engine"] for row in rows if row["batch"] == batch}
    except KeyError as error:
        raise InputError(f"{design}: has no column {error}; {REMEDY}") from None
    if not wanted:
        raise InputError(f"{design}: has no batch {batch}; {REMEDY}")
    path = design.parent / "scenarios" / f"{design.stem}.json"
    found = {}
    for line in read_text(path).splitlines():
        # As `write_scenarios` writes them: "id":{...},
        if (name := line[1:17]) in wanted:
            found[name] = _scenario(path, name, line[19:].rstrip(","))
    if missing := sorted(wanted.keys() - found.keys()):
        raise InputError(f"{path}: has no scenario {missing[0]}; {REMEDY}")
    return next(iter(wanted.values())), found


def _scenario(path: Path, name: str, text: str) -> Scenario:
    try:
        scenario = Scenario.model_validate_json(text)
    except ValidationError as error:
        raise InputError(f"{path}: scenario {name}: {describe(error)}; {REMEDY}") from None
    if scenario.id != name:
        raise InputError(f"{path}: scenario {name} has the content of {scenario.id}; {REMEDY}")
    return scenario
