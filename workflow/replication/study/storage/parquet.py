"""Parquet files whose every page and whole is checked when it is read.

Plain Arrow, since every batch pays for what is imported here before its first simulation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from replication.study.storage.seal import check, sealed


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write `table` atomically, with its record; the bytes depend on its content alone."""
    with sealed(path) as temporary:
        plain = table.combine_chunks().replace_schema_metadata(None)
        pq.write_table(plain, temporary, compression="zstd", write_page_checksum=True)


def read_parquet(path: Path, **options: Any) -> pa.Table:
    """Return the table in a file; `options` are those of `pyarrow.parquet.read_table`.

    Raises
    ------
    InputError
        It is not what its maker wrote; see `study.seal.check`.
    OSError
        It cannot be read.
    """
    # Pages have checksums of their own; what says where they are and what they mean has none.
    check(path)
    return pq.read_table(path, page_checksum_verification=True, **options)
