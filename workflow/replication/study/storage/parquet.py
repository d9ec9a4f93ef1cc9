"""Parquet files whose every page is checked when it is read.

Plain Arrow, since every batch pays for what is imported here before its first simulation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from replication.study.errors import InputError
from replication.study.files import REMEDY, atomic


def write_parquet(table: pa.Table, path: Path, level: int | None = None) -> None:
    """Write `table` atomically, packed at a level of zstd; bytes depend on its content alone."""
    with atomic(path) as temporary:
        plain = table.combine_chunks().replace_schema_metadata(None)
        pq.write_table(
            plain,
            temporary,
            compression="zstd",
            compression_level=level,
            write_page_checksum=True,
        )


def read_parquet(path: Path, **options: Any) -> pa.Table:
    """Return the table in a file, by pyarrow's `options`; InputError where it is damaged."""
    try:
        return pq.read_table(path, page_checksum_verification=True, **options)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; run the workflow first") from None
    except (OSError, pa.ArrowException) as error:
        what = str(error).partition("\n")[0]
        raise InputError(f"{path}: cannot be read ({what}); {REMEDY}") from None
