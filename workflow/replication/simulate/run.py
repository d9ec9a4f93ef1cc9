"""Run the scenarios of a batch into the store; check and gather their tables.

Tables are plain Arrow: importing pandas would cost every batch a second.
"""

import contextlib
import csv
import json
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pydantic import ValidationError

from replication.base.errors import InputError, RunError, describe, describe_refusal
from replication.base.files import REMEDY, read_text, write_text
from replication.base.table import (
    COMPLETION,
    FLOW_NUMBERS,
    SERIES_NUMBERS,
    SOCKET_NUMBERS,
    write_parquet,
)
from replication.engines.catalogue import ENGINES
from replication.engines.generation import Generation, load_generation
from replication.engines.ns3 import NS3_VERSION
from replication.simulate.runtime import Launch, Runtime, make_runtime
from replication.simulate.store import TABLES, Progress, Store
from replication.study.scenario import Scenario, TcpFlow

#: The tables of one run by their files' names.
RunTables = dict[str, pa.Table]

_TEXT = pa.large_string()
_NS = 1_000_000_000
_WHERE_PACKETS_END = ("packets_received", "packets_dropped", "packets_in_flight")
#: The columns of every run by the table's file name.
_NUMBERS = {"flows.csv": FLOW_NUMBERS, "series.csv": SERIES_NUMBERS}
_TYPES = {
    **dict.fromkeys((*FLOW_NUMBERS, COMPLETION, "time_s"), pa.float64()),
    **dict.fromkeys((*SERIES_NUMBERS, *SOCKET_NUMBERS), pa.float64()),
    **dict.fromkeys(("flow", "link", "kind"), _TEXT),
}
_READING = {
    # One thread: Snakemake runs as many batches as there are cores.
    "read_options": pyarrow.csv.ReadOptions(use_threads=False),
    "convert_options": pyarrow.csv.ConvertOptions(
        column_types=_TYPES, null_values=["", "nan"], strings_can_be_null=True
    ),
}


@dataclass(frozen=True)
class Job:
    """The scenarios of a batch, their runtime and their store.

    `options` are those of `replicate run` that choose the same version and runtime; `generation` is
    the engine's current one, if it has any.
    """

    engine: str
    runtime: Runtime
    scenarios: dict[str, Scenario]
    store: Store
    options: str = ""
    generation: Generation | None = None


def open_job(root: Path, launch: Launch, scenarios: dict[str, Scenario]) -> Job:
    """Return a job that runs `scenarios` into the store of `launch`, which is made if missing."""
    store = Path(launch.store).resolve()
    store.mkdir(parents=True, exist_ok=True)
    options = ""
    if launch.engine == "ns3" and launch.ns3_version != NS3_VERSION:
        options += f" --ns3-version {launch.ns3_version}"
    if launch.runtime != "native":
        options += f" --runtime {launch.runtime}"
    return Job(
        launch.engine,
        make_runtime(root, launch, store),
        scenarios,
        Store(store, launch.engine),
        options,
        load_generation(root, launch.engine),
    )


def run_batch(
    job: Job,
    fingerprint: str,
    listed_version: str,
    usage: Path,
    tables: tuple[Path, Path],
    progress: Progress,
) -> None:
    """Run what is not in the store; write its usage, and `tables` (flows, series) as Parquet.

    `listed_version` is that of the engine's generation if its sources here are listed, else empty.
    """
    exact = ENGINES[job.engine].exact_version(job.runtime.written_version(), fingerprint)
    if job.generation is not None and job.generation.has_built(exact):
        listed_version = job.generation.version
    version = listed_version or exact
    started = time.time()
    finished = run_job(job, progress.tick)
    for path, name in zip(tables, _NUMBERS, strict=True):
        write_parquet(read_runs(job.store, finished, job.engine, version, name), path)
    document = {
        "engine": job.engine,
        "engine_version": version,
        "started": started,
        "finished": time.time(),
        "runs": list(finished.values()),
    }
    write_text(usage, json.dumps(document) + "\n")
    progress.tick(force=True)


def run_job(job: Job, progress: Callable[[], None]) -> dict[str, dict[str, Any]]:
    """Run what is not in the store; return the usage of all. RunError names a failed run."""
    finished = {}
    try:
        for scenario_id in sorted(job.scenarios):
            stored = job.store.usage(scenario_id)
            usage = stored or _run_one(job, scenario_id)
            origin = {"scenario": scenario_id, "engine": job.engine, "reused": stored is not None}
            finished[scenario_id] = origin | usage
            progress()
    finally:
        job.runtime.close()
    return finished


def _run_one(job: Job, scenario_id: str) -> dict[str, Any]:
    scenario = job.scenarios[scenario_id]
    work = job.store.begin(scenario_id, scenario, ENGINES[job.engine])
    try:
        used = job.runtime.run(work)
        check_run(work, scenario)
        usage = vars(used) | {"runtime": job.runtime.name, "image": job.runtime.image}
        job.store.finish(scenario_id, work, usage)
        return usage
    except (RunError, OSError) as error:
        reason = describe_refusal(error) or error
        if isinstance(error, RunError):
            # A full disk may be why the run failed.
            with contextlib.suppress(OSError):
                job.store.keep_failed(scenario_id, scenario)
            reason = f"{reason}; repeat it: {_command(job, scenario_id)}"
        raise RunError(f"scenario {scenario_id} on {job.engine}: {reason}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _command(job: Job, scenario_id: str) -> str:
    return f"replicate run {scenario_id} --engine {job.engine}{job.options}"


def designed_batch(design: Path, batch: str) -> tuple[str, dict[str, Scenario]]:
    """Return engine and scenarios of a batch; `design` is the study's table of runs."""
    # Only the batch's lines are parsed: a design may have tens of thousands of runs.
    head, *lines = read_text(design).splitlines() or [""]
    rows = list(csv.DictReader([head, *(line for line in lines if batch in line)]))
    try:
        engines = {row["scenario"]: row["engine"] for row in rows if row["batch"] == batch}
    except KeyError as error:
        raise InputError(f"{design}: has no column {error}; {REMEDY}") from None
    if not engines:
        raise InputError(f"{design}: has no batch {batch}; {REMEDY}")
    path = design.parent / "scenarios" / f"{design.stem}.json"
    # The format of `write_scenarios`: "id":{...},
    texts = {line[1:17]: line[19:].rstrip(",") for line in read_text(path).splitlines()}
    scenarios = {name: _scenario(path, name, texts) for name in engines}
    return next(iter(engines.values())), scenarios


def _scenario(path: Path, name: str, texts: Mapping[str, str]) -> Scenario:
    if name not in texts:
        raise InputError(f"{path}: has no scenario {name}; {REMEDY}")
    try:
        scenario = Scenario.model_validate_json(texts[name])
    except ValidationError as error:
        raise InputError(f"{path}: scenario {name}: {describe(error)}; {REMEDY}") from None
    if scenario.id != name:
        raise InputError(f"{path}: scenario {name} has the content of {scenario.id}; {REMEDY}")
    return scenario


def _read(name: str, content: bytes, columns: Sequence[str]) -> pa.Table:
    try:
        # A stream takes a third of the time of `read_csv` for a small file.
        with pyarrow.csv.open_csv(pa.BufferReader(content), **_READING) as stream:
            table = stream.read_all()
    except pa.ArrowInvalid as error:
        reason = " ".join(str(error).split())[:200]
        raise RunError(f"{name}: cannot be read ({reason})") from None
    if missing := [column for column in columns if column not in table.column_names]:
        raise RunError(f"{name}: lacks {', '.join(missing)}")
    return table


def check_run(work: Path, scenario: Scenario) -> RunTables:
    """Return the tables that an engine wrote into `work`; RunError unless they are complete.

    run.json names the scenario. flows.csv has every flow once, in the scenario's order; packets
    sent are those received, dropped and in flight. series.csv has every sample of every flow and
    monitor.
    """
    try:
        content = {name: (work / name).read_bytes() for name in TABLES}
        named = json.loads(content["run.json"])["scenario"]
    except OSError as error:
        name = Path(str(error.filename)).name
        raise RunError(f"{name}: cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"run.json: cannot be read ({error})") from None
    if named != scenario.id:
        raise RunError(f"run.json: belongs to scenario {named!r}")
    tcp = [flow for flow in scenario.flows if isinstance(flow, TcpFlow)]
    flow_numbers, series_numbers = FLOW_NUMBERS, SERIES_NUMBERS
    if any(flow.stop_after_bytes for flow in tcp):
        flow_numbers = (*flow_numbers, COMPLETION)
    if any(flow.socket_samples for flow in tcp):
        series_numbers = (*series_numbers, *SOCKET_NUMBERS)
    flows = _read("flows.csv", content["flows.csv"], ("flow", *flow_numbers))
    _check_flows(flows, scenario)
    series = _read("series.csv", content["series.csv"], ("time_s", *series_numbers))
    samples = round(scenario.duration_s * _NS) // round(scenario.sampling_interval_s * _NS)
    rows = samples * (len(scenario.flows) + len(scenario.monitors))
    if len(series) != rows:
        raise RunError(f"series.csv: has {len(series)} rows, not {rows}")
    _check_finite(series, "series.csv", ("time_s", *series_numbers))
    return {"flows.csv": flows, "series.csv": series}


def _check_flows(flows: pa.Table, scenario: Scenario) -> None:
    if flows["flow"].to_pylist() != [flow.id for flow in scenario.flows]:
        raise RunError("flows.csv: its flows are not the scenario's")
    _check_finite(flows, "flows.csv", FLOW_NUMBERS)
    for row in flows.select(["packets_sent", *_WHERE_PACKETS_END]).to_pylist():
        counts = [row[name] for name in _WHERE_PACKETS_END]
        if None in row.values() or row["packets_sent"] != sum(counts) or min(counts) < 0:
            raise RunError("flows.csv: packets received, dropped and in flight do not sum to sent")


def _check_finite(table: pa.Table, name: str, columns: Sequence[str]) -> None:
    for column in columns:
        # Missing numbers are allowed, and `all` of a column without numbers is None.
        if pc.all(pc.is_finite(table[column])).as_py() is False:
            raise RunError(f"{name}: {column} is not finite everywhere")


def read_runs(
    store: Store, scenario_ids: Iterable[str], engine: str, engine_version: str, table: str
) -> pa.Table:
    """Read a `table` of finished runs in the order of their ids."""
    tables = []
    for scenario_id in sorted(scenario_ids):
        stored = store.tables(scenario_id)
        if stored is None:
            raise RunError(f"{store.entry(scenario_id)}: is damaged or missing; {REMEDY}")
        rows = _read(table, stored[table], _NUMBERS[table])
        names = {"scenario": scenario_id, "engine": engine, "engine_version": engine_version}
        for place, (name, value) in enumerate(names.items()):
            rows = rows.add_column(place, name, _repeated(value, len(rows)))
        tables.append(rows)
    # Runs without a transfer or socket samples lack these columns.
    return pa.concat_tables(tables, promote_options="default")


def _repeated(text: str, count: int) -> pa.Array:
    # `pa.array` of repeated text would import pandas, which takes a second.
    content = text.encode()
    offsets = np.arange(count + 1, dtype=np.int64) * len(content)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(content * count)]
    return pa.Array.from_buffers(_TEXT, count, buffers)
