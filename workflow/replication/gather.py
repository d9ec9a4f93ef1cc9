"""Gather: the tables of many runs put together into one Parquet file.

Plain Arrow, since every batch pays for what is imported here before its first simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from replication.errors import RunError
from replication.files import atomic
from replication.run_table import TEXT, read_run_table
from replication.simulate import Finished, Job
from replication.store import Store


def gather(
    job: Job,
    finished: Mapping[str, Finished],
    engine_version: str,
    table: str,
    columns: Sequence[str],
) -> pa.Table:
    """Put one table of every scenario of the job into a tidy one; see `read_runs`."""
    found = {name: run.tables[table] for name, run in finished.items() if table in run.tables}
    return read_runs(job.store, finished, job.engine, engine_version, table, columns, found)


def read_runs(
    store: Store,
    scenario_ids: Iterable[str],
    engine: str,
    engine_version: str,
    table: str,
    columns: Sequence[str],
    known: Mapping[str, pa.Table] | None = None,
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
        Tables that were read before, by scenario.

    Raises
    ------
    RunError
        A table cannot be read or does not have the columns of the contract.
    """
    tables, known = [], known or {}
    for scenario_id in sorted(scenario_ids):
        found = known.get(scenario_id)
        if found is None:
            found = _read_finished(store.entry(scenario_id), table, columns)
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


def _read_finished(entry: Path, table: str, columns: Sequence[str]) -> pa.Table:
    try:
        return read_run_table(entry / table, columns)
    except RunError as error:
        raise RunError(f"{entry}: {error}; remove the folder") from None


def _repeated(text: str, count: int) -> pa.Array:
    """Return a column of `text` alone; Arrow's own way of making one imports pandas, a second."""
    content = text.encode()
    offsets = np.arange(count + 1, dtype=np.int64) * len(content)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(content * count)]
    return pa.Array.from_buffers(TEXT, count, buffers)


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write `table` atomically; the bytes depend on its content alone."""
    with atomic(path) as temporary:
        plain = table.combine_chunks().replace_schema_metadata(None)
        pq.write_table(plain, temporary, compression="zstd")


def collect(parts: list[Path], path: Path, keys: list[str]) -> None:
    """Concatenate Parquet files into one, sorted by `keys` so that batching leaves no trace.

    Raises
    ------
    RunError
        A file is missing or damaged.
    """
    table = pa.concat_tables([_read_part(part) for part in parts])
    write_parquet(table.sort_by([(key, "ascending") for key in keys]), path)


def _read_part(part: Path) -> pa.Table:
    try:
        return pq.read_table(part)
    except (OSError, pa.ArrowInvalid):
        raise RunError(f"{part}: cannot be read; remove it and run again") from None
