"""The tables of runs: checked before a run counts as finished, and gathered into Parquet files.

A simulator that died half-way, or wrote something else, must not leave a result that looks like
one. Plain Arrow, since every batch pays for what is imported here before its first simulation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from replication.simulate.store import TABLES, Store
from replication.study.errors import RunError
from replication.study.files import REMEDY
from replication.study.scenario import Scenario, TcpFlow
from replication.study.storage.parquet import write_parquet
from replication.study.storage.table import (
    COMPLETION,
    FLOW_NUMBERS,
    SERIES_NUMBERS,
    SOCKET_NUMBERS,
)

#: The tables of one run by their files' names.
RunTables = dict[str, pa.Table]

TEXT = pa.large_string()
#: Columns of the engines' tables that are text; an empty field is a missing one.
TEXTS = ("flow", "link", "kind")
_NS = 1_000_000_000
_WHERE_PACKETS_END = ("packets_received", "packets_dropped", "packets_in_flight")


def _read(name: str, content: bytes, columns: Sequence[str]) -> pa.Table:
    # One thread: a batch is one of as many as there are cores.
    reading = pyarrow.csv.ReadOptions(use_threads=False)
    try:
        # As a stream: a third of the time that `read_csv` takes for a small file.
        with pyarrow.csv.open_csv(
            pa.BufferReader(content),
            read_options=reading,
            convert_options=_options(tuple(columns)),
        ) as stream:
            found = stream.read_all()
    except pa.ArrowInvalid as error:
        reason = " ".join(str(error).split())[:200]
        raise RunError(f"{name}: cannot be read ({reason})") from None
    if missing := [column for column in columns if column not in found.column_names]:
        raise RunError(f"{name}: lacks {', '.join(missing)}")
    return found


@cache
def _options(columns: tuple[str, ...]) -> pyarrow.csv.ConvertOptions:
    numbers = (*columns, "time_s", COMPLETION, *SOCKET_NUMBERS)
    types = dict.fromkeys(numbers, pa.float64()) | dict.fromkeys(TEXTS, TEXT)
    return pyarrow.csv.ConvertOptions(
        column_types=types, null_values=["", "nan"], strings_can_be_null=True
    )


def check_run(work: Path, scenario: Scenario) -> RunTables:
    """Return the tables of `scenario` in folder `work`, which must be complete; else RunError.

    Every flow once, in the scenario's order; every sample of every flow and monitor; each packet
    that was sent received, dropped or in flight; and the scenario's own name in run.json.
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
            raise RunError("flows.csv: packets sent are not those received, dropped and in flight")


def _check_finite(table: pa.Table, name: str, columns: Sequence[str]) -> None:
    for column in columns:
        # Missing numbers are passed over; of a column without any number nothing is known.
        if pc.all(pc.is_finite(table[column])).as_py() is False:
            raise RunError(f"{name}: {column} is not finite everywhere")


def gather(
    store: Store,
    finished: Mapping[str, RunTables],
    engine: str,
    engine_version: str,
    paths: tuple[Path, Path],
) -> None:
    """Write the flows and the series of finished runs to `paths`; see `read_runs`."""
    tables = (("flows.csv", FLOW_NUMBERS), ("series.csv", SERIES_NUMBERS))
    for path, (table, columns) in zip(paths, tables, strict=True):
        found = read_runs(store, finished, engine, engine_version, table, columns, finished)
        write_parquet(found, path)


def read_runs(
    store: Store,
    scenario_ids: Iterable[str],
    engine: str,
    engine_version: str,
    table: str,
    columns: Sequence[str],
    known: Mapping[str, RunTables] | None = None,
) -> pa.Table:
    """Read a table of finished runs, by its CSV file's name, in the order of their ids.

    `known` are tables that were read before. RunError where a run is not intact.
    """
    tables, known = [], known or {}
    for scenario_id in sorted(scenario_ids):
        found = known.get(scenario_id, {}).get(table)
        if found is None:
            stored = store.tables(scenario_id)
            if stored is None:
                raise RunError(f"{store.entry(scenario_id)}: is damaged or gone; {REMEDY}")
            found = _read(table, stored[table], columns)
        names = {"scenario": scenario_id, "engine": engine, "engine_version": engine_version}
        for place, (name, value) in enumerate(names.items()):
            found = found.add_column(place, name, _repeated(value, len(found)))
        tables.append(found)
    # Runs without a transfer, or without samples of sockets, lack their columns.
    return pa.concat_tables(tables, promote_options="default")


def _repeated(text: str, count: int) -> pa.Array:
    """Return a column of `text` alone; Arrow's own way of making one imports pandas, a second."""
    content = text.encode()
    offsets = np.arange(count + 1, dtype=np.int64) * len(content)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(content * count)]
    return pa.Array.from_buffers(TEXT, count, buffers)
