"""The tables of results: columns (data/README.md explains them), CSV and Parquet files."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from replication.base.errors import InputError
from replication.base.files import REMEDY, atomic, read_json, read_text, write_text

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

#: A row of a CSV file, every field as text.
Row = dict[str, str]
AnyRow = TypeVar("AnyRow")
#: Significant digits of written numbers: more than inputs have, and without rounding errors.
DIGITS = 10


def _named(names: str) -> tuple[str, ...]:
    return tuple(names.split())


PUBLISHED_COLUMNS = ("table", "row", "column", "unit", "value", "printed", "place")
DESIGN_COLUMNS = _named(
    "study experiment point levels replicate engine setup scenario supported reason batch cost_s"
)
#: Numbers of an engine's flows.csv, after `flow` and `kind`.
FLOW_NUMBERS = _named(
    "throughput_bps goodput_bps delay_mean_s delay_p95_s rtt_mean_s packets_sent "
    "packets_received packets_dropped packets_in_flight retransmissions timeouts loss_rate "
    "delivery_ratio"
)
#: Another number, in runs that have a flow with `stop_after_bytes`.
COMPLETION = "completion_time_s"
#: Numbers of an engine's series.csv, after `time_s`, `flow` and `link`.
SERIES_NUMBERS = _named(
    "throughput_bps cwnd_bytes ssthresh_bytes rtt_s delay_s queue_packets drops retransmissions"
)
#: Other numbers, in runs that have a flow with `socket_samples`.
SOCKET_NUMBERS = _named("goodput_bps delivery_rate_bps pacing_rate_bps")
FLOW_COLUMNS = ("scenario", "engine", "flow", "kind", *FLOW_NUMBERS, COMPLETION)
#: A subject is a flow, a link (`bottleneck:ab`) or the name of a set of flows (`tcp`).
FEATURE_COLUMNS = ("scenario", "engine", "subject", "metric", "window", "value")
SERIES_COLUMNS = ("scenario", "engine", "time_s", "flow", "link", *SERIES_NUMBERS)
CELL_COLUMNS = _named(
    "study table row column kind engine setup unit published published_half_ulp printed factor "
    "reproduced_mean reproduced_low reproduced_high n relative_deviation verdict reason_code reason"
)
CLAIM_COLUMNS = _named(
    "study claim quote place engine setup statistic observed low high margin runs_passing counted "
    "verdict reason_code reason"
)
#: A claim's test on the paper's own numbers and traces; `result` is holds, fails or none.
SELF_CONSISTENCY_COLUMNS = ("study", "claim", "result", "reason")
AUDIT_COLUMNS = _named("study table row column check published bound finding reason")
TRACE_COLUMNS = _named(
    "study experiment point trace flow congestion_control engine metric unit evidence published "
    "reproduced_mean reproduced_low reproduced_high n relative_deviation"
)
TRACE_NEARNESS_COLUMNS = ("study", "metric", "engine", "nearest", "flows", "share")
TRACE_SAMPLE_COLUMNS = _named(
    "study trace flow engine minrtt_s our_rtt_low_s our_rtt_high_s first_pacing_rate_bps "
    "our_pacing_low_bps our_pacing_high_bps first_busy_s first_cwnd_segments our_cwnd_segments n"
)
TRACE_WINDOW_COLUMNS = ("study", "trace", "flow", "source", "time_s", "cwnd_segments")
#: The results of the regions; without this table the report has no page of them.
REGIONS_TABLE = "regions.csv"
REGION_COLUMNS = _named(
    "region study claim engine axes points holds fails undecided cannot_differ coverage_90 brier "
    "validation_points cpu_minutes"
)
#: Checks of the engines in canonical scenarios, written by workflow/measurements/conformance.py.
CONFORMANCE = Path("data/conformance.csv")
#: Checks of an engine in a canonical scenario; `holds` is true, false or refused.
CONFORMANCE_COLUMNS = _named(
    "engine version check scenario quantity unit expected low high value holds source note"
)
#: Results of the same flows on each engine, written by workflow/measurements/differences.py.
DIFFERENCES = Path("data/engine_differences.csv")
#: The same experiment on each engine; `entry` names the causes of a large difference, `generation`
#: the engine that was measured, and `scenario` the first run.
DIFFERENCE_COLUMNS = _named(
    "variant condition engine metric value law difference entry generation scenario"
)
#: BBR's share against a loss-based flow beside Ware's law (workflow/measurements/bbr_shares.py).
BBR_SHARES = Path("data/bbr_shares.csv")
#: BBR's share of the link until `until_s`, what Ware's law gives, and how full the queue was.
BBR_SHARE_COLUMNS = _named("rival buffer_bdp until_s bbr_share law queue_share generation scenario")
#: Results of the interventions, which `make interventions` writes.
INTERVENTIONS = Path("data/interventions.csv")
#: Stated causes, switched on and off; `scenarios` is a hash of all runs.
INTERVENTION_COLUMNS = _named(
    "intervention sentence place study engine statistic configuration_with configuration_without "
    "expected measured_with measured_without passing_with passing_without holds generation "
    "scenarios"
)


def grouped(rows: Iterable[AnyRow], *fields: str) -> dict[tuple[str, ...], list[AnyRow]]:
    """Group rows by the values of some fields, in order of appearance."""
    groups: dict[tuple[str, ...], list[AnyRow]] = {}
    for row in rows:
        key = tuple(field_of(row, name) for name in fields)
        groups.setdefault(key, []).append(row)
    return groups


def flat(parts: Iterable[Iterable[AnyRow]]) -> list[AnyRow]:
    """Return the entries of all parts as one list."""
    return list(itertools.chain.from_iterable(parts))


def field_of(row: object, name: str) -> Any:
    """Return a field of a row, which is a mapping or an object."""
    return row[name] if isinstance(row, Mapping) else getattr(row, name)


def read_rows(path: Path, columns: Sequence[str]) -> list[Row]:
    """Return a CSV file's rows, every field as text; InputError if one of `columns` is missing."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), restval="")
    try:
        missing = [name for name in columns if name not in (reader.fieldnames or [])]
        if missing:
            raise InputError(f"{path}: has no column {', '.join(missing)}; {REMEDY}")
        return [{name: row[name] or "" for name in reader.fieldnames or []} for row in reader]
    except csv.Error as error:
        raise InputError(f"{path}: is not a CSV table ({error}); {REMEDY}") from None


def read_design(data: Path, study: str) -> list[Row]:
    """Return the rows of a study's design in a folder of results; errors as of `read_rows`."""
    return read_rows(data / "design" / f"{study}.csv", DESIGN_COLUMNS)


def read_typed(path: Path, row_type: type[AnyRow]) -> AnyRow:
    """Return a JSON file as a row type; InputError if it is missing, damaged or outdated."""
    return typed(path, row_type, read_json(path))


def typed(path: Path, row_type: type[AnyRow], document: Any) -> AnyRow:
    """Return plain data of `path` as a row type; InputError if another version wrote it."""
    try:
        return TypeAdapter(row_type).validate_python(document)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise InputError(f"{path}: {place}: made by another version; {REMEDY}") from None


def read_frame(path: Path) -> pd.DataFrame:
    """Return a CSV table by `pandas.read_csv`; InputError if it is missing or damaged."""
    import pandas as pd

    text = io.StringIO(read_text(path))
    try:
        return pd.DataFrame(pd.read_csv(text))
    except ValueError as error:
        raise InputError(f"{path}: is not a CSV table ({error}); {REMEDY}") from None


def merge_tables(
    folders: Sequence[Path], tables: Mapping[str, Sequence[str]], target: Path
) -> None:
    """Write each of `tables` (name to columns), joined from all folders, as CSV into `target`."""
    for name, columns in tables.items():
        header = ",".join(columns) + "\n"
        texts = [header]
        for path in (folder / f"{name}.csv" for folder in folders):
            text = read_text(path) if path.is_file() else ""
            if not text.startswith(header):
                raise InputError(f"{path}: is missing or of another version: {REMEDY}")
            texts.append(text.removeprefix(header))
        write_text(target / f"{name}.csv", "".join(texts))


def write_table(path: Path, rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> None:
    """Write rows as CSV; ValueError unless each row has exactly these columns."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        if set(row) != set(columns):
            raise ValueError(f"{path.name}: row with columns {sorted(row)}, not {sorted(columns)}")
        writer.writerow([written(row[column]) for column in columns])
    write_text(path, text.getvalue())


def written(value: object) -> str:
    """Return a value as a field of a CSV file."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    return str(value)


def write_parquet(
    table: pa.Table, path: Path, level: int | None = None, split: Collection[str] = ()
) -> None:
    """Write a table, compressed by zstd; equal tables give equal files.

    In the columns `split` each number resembles the one above it, as a window over time does: bytes
    of like places are stored together.
    """
    import pyarrow.parquet as pq  # slow to import, and a run with nothing to do needs no table

    plain = table.combine_chunks().replace_schema_metadata(None)
    how: dict[str, Any] = {"compression": "zstd", "compression_level": level}
    if split:
        how["use_byte_stream_split"] = list(split)
        how["use_dictionary"] = [name for name in plain.column_names if name not in split]
    with atomic(path) as temporary:
        pq.write_table(plain, temporary, write_page_checksum=True, **how)


def write_frame(frame: pd.DataFrame, path: Path, level: int | None = None) -> None:
    """Write a data frame as Parquet, without its index."""
    import pyarrow as pa

    write_parquet(pa.Table.from_pandas(frame, preserve_index=False), path, level)


def in_order(table: pa.Table, keys: Iterable[str]) -> pa.Table:
    """Return the table with ascending rows; a missing key comes last."""
    return table.sort_by([(key, "ascending") for key in keys])


def read_parquet(path: Path, **options: Any) -> pa.Table:
    """Return the table in a file; InputError if it is missing or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, page_checksum_verification=True, **options)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; run the workflow first") from None
    except (OSError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path}: cannot be read ({reason}); {REMEDY}") from None
