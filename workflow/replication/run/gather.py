"""Gather: the tables of many runs put together into one Parquet file.

Plain Arrow, since every batch pays for what is imported here before its first simulation. What
this module imports decides the tables and so is in the names of batches: nothing else belongs here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from replication.run.run_table import TEXT, RunTables, read_run_table
from replication.run.store import Store
from replication.study.errors import RunError
from replication.study.storage.parquet import write_parquet
from replication.study.storage.table import FLOW_NUMBERS, SERIES_NUMBERS


def gather(
    store: Store,
    finished: Mapping[str, RunTables],
    engine: str,
    engine_version: str,
    paths: tuple[Path, Path],
) -> None:
    """Write the flows and the series of finished runs to `paths`; see `read_runs`."""
    for path, table, columns in zip(
        paths, ("flows.csv", "series.csv"), (FLOW_NUMBERS, SERIES_NUMBERS), strict=True
    ):
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
    """Read one table of finished runs into a tidy one, in the order of their ids.

    Parameters
    ----------
    store, scenario_ids
        Where they are, and which.
    engine, engine_version
        What ran them.
    table
        The name of the engines' CSV file.
    columns
        The numbers that it must have.
    known
        Tables that were read before, by scenario; not all have to be there.

    Raises
    ------
    RunError
        A run is not complete and intact, or its table does not have the contract's columns.
    """
    tables, known = [], known or {}
    for scenario_id in sorted(scenario_ids):
        found = known.get(scenario_id, {}).get(table)
        if found is None:
            found = _read_finished(store, scenario_id, table, columns)
        for place, (name, value) in enumerate(
            (
                ("scenario", scenario_id),
                ("engine", engine),
                ("engine_version", engine_version),
            )
        ):
            found = found.add_column(place, name, _repeated(value, len(found)))
        tables.append(found)
    return pa.concat_tables(tables)


def _read_finished(store: Store, scenario_id: str, table: str, columns: Sequence[str]) -> pa.Table:
    tables = store.tables(scenario_id)
    if tables is None:
        raise RunError(
            f"{store.entry(scenario_id)}: is not a complete and intact run: remove "
            "data/reproduced/sensitivity/*/usage and run `make explain`, which makes it anew"
        )
    try:
        return read_run_table(table, tables[table], columns)
    except RunError as error:
        raise RunError(
            f"{store.folder}: scenario {scenario_id}: {error}; remove the folder"
        ) from None


def _repeated(text: str, count: int) -> pa.Array:
    """Return a column of `text` alone; Arrow's own way of making one imports pandas, a second."""
    content = text.encode()
    offsets = np.arange(count + 1, dtype=np.int64) * len(content)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(content * count)]
    return pa.Array.from_buffers(TEXT, count, buffers)
