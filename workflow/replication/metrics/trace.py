"""Published traces of congestion windows: where they are, how they are read, and their flows.

A study has traces if a table is called ``trace:<stem>``. Its rows are the flows of the trace and
map to flows of an experiment; its published numbers are summary figures of the trace. The raw
traces, `ss` samples of TCP senders, belong to their authors: data/published/traces.yaml has their
address. Without them only summary figures are compared.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from replication.study.errors import InputError
from replication.study.files import fetch, sha256_of
from replication.study.model import Document
from replication.study.position import read_models
from replication.study.study import Study

#: A data flow has at least this share of the busiest flow's samples. iperf3's control connection is
#: sampled only at the start and the end of a test.
DATA_FLOW_FRACTION = 0.10

TRIO_COLUMNS = (
    "time_s",
    "source",
    "retransmissions_in_flight",
    "retransmissions",
    "cwnd_segments",
    "ssthresh_segments",
)
#: Columns that every sample has; `ss` leaves out the others at times.
_NEEDED = ("time_s", "port", "cwnd_segments")
PAIR_COLUMNS = (*TRIO_COLUMNS[:2], "delivery_rate_kbps", "rtt_ms", *TRIO_COLUMNS[2:])


def _malformed(path: Path, reason: str) -> InputError:
    expected = "expected the CSV that the study's script makes of `ss -ein`"
    return InputError(f"{path}: {reason}; {expected}")


def read_trace(path: Path) -> pd.DataFrame:
    """Read one `ss` trace of all connections of a sender, a CSV without header.

    Returns the columns of `TRIO_COLUMNS` or `PAIR_COLUMNS` in SI units, the source as port. NaN is
    what `ss` does not print: a count of zero or an unset threshold. InputError names a wrong line.
    """
    try:
        raw = pd.read_csv(path, header=None, dtype=str, skip_blank_lines=False)
    except ValueError as error:
        # The parser's message names the line: "Expected 6 fields in line 3, saw 7".
        raise _malformed(path, str(error).strip()) from error
    layouts = {len(names): names for names in (TRIO_COLUMNS, PAIR_COLUMNS)}
    if raw.shape[1] not in layouts:
        raise _malformed(path, f"line 1: {raw.shape[1]} columns")
    raw.columns = pd.Index(layouts[raw.shape[1]])
    counters = ["retransmissions_in_flight", "retransmissions"]
    # Before the first retransmission `ss` may print another counter there, such as "sacked:1
    # rcv_space", and the study's script then cuts out that counter and the next word.
    raw.loc[raw["retransmissions"] == "rcv_space", counters] = None
    raw["port"] = raw.pop("source").str.rpartition(":")[2]
    trace: pd.DataFrame = raw.apply(pd.to_numeric, errors="coerce").astype(float)
    wrong = (raw.notna() | raw.columns.isin(_NEEDED)) & ~np.isfinite(trace)
    wrong["cwnd_segments"] |= trace["cwnd_segments"] <= 0
    if wrong.any(axis=None):
        row = int(np.flatnonzero(wrong.any(axis=1))[0])
        name = str(wrong.columns[wrong.iloc[row]][0])
        shown = "nothing" if pd.isna(raw[name].iloc[row]) else repr(raw[name].iloc[row])
        kind = "a positive number" if name == "cwnd_segments" else "a number"
        raise _malformed(path, f"line {row + 1}: {name} is {shown}, not {kind}")
    trace["port"] = trace["port"].astype(int)
    if "rtt_ms" in trace:
        trace["rtt_s"] = trace.pop("rtt_ms") / 1e3
        trace["delivery_rate_bps"] = trace.pop("delivery_rate_kbps") * 1e3
    return trace


def read_flows(path: Path, names: Collection[str]) -> dict[str, pd.DataFrame]:
    """Return the samples of each data flow by its name; `names` are in the order of the ports."""
    trace = read_trace(path)
    counts = trace["port"].value_counts()
    ports = sorted(counts.index[counts >= DATA_FLOW_FRACTION * counts.max()])
    if len(names) != len(ports):
        raise _malformed(path, f"{len(ports)} data flows for {len(names)} names")
    return {
        name: trace[trace["port"] == port].sort_values("time_s", ignore_index=True)
        for name, port in zip(names, ports, strict=True)
    }


FOLDER = Path("data/traces")
SOURCES = Path("data/published/traces.yaml")
TABLE_PREFIX = "trace:"
_GITHUB = "https://raw.githubusercontent.com"
#: End of the name of a raw trace.
TRACE_SUFFIX = ".sender-ss.csv"


class TraceSource(Document):
    """The published traces of a study: path and hash of each in a GitHub repository at a commit."""

    repository: str
    commit: str
    licence: str
    files: dict[str, dict[Literal["path", "sha256"], str]]


def load_sources(root: Path) -> dict[str, TraceSource]:
    """Return the published traces by study; InputError names a wrong field."""
    return read_models(root / SOURCES, TraceSource)


def has_traces(study: Study) -> bool:
    """Return whether a study has published traces."""
    return any(table.id.startswith(TABLE_PREFIX) for table in study.tables)


def trace_files(root: Path, study: str) -> dict[str, Path]:
    """Return the raw traces of a study on this machine, by name."""
    files = sorted((root / FOLDER / study).glob(f"*{TRACE_SUFFIX}"))
    return {path.name.removesuffix(TRACE_SUFFIX): path for path in files}


def traces_hash(root: Path, studies: Sequence[str]) -> str:
    """Return a hash over the studies' raw traces; empty without any."""
    files = {study: trace_files(root, study) for study in studies}
    return " ".join(f"{study}:{sha256_of(*own.values())}" for study, own in files.items() if own)


def fetch_traces(root: Path, source: Path | None = None) -> str:
    """Put the published traces into `FOLDER`, verify each, and return a sentence on them.

    `source` is a folder with ``<study>/<trace>.sender-ss.csv``, or a clone of the authors'
    repository; without it they come from GitHub. InputError: one is missing or differs.
    """
    studies = load_sources(root)
    count = 0
    for study, published in studies.items():
        for name, file in published.files.items():
            target = root / FOLDER / study / f"{name}{TRACE_SUFFIX}"
            address = f"{_GITHUB}/{published.repository}/{published.commit}/{file['path']}"
            if source is not None:
                places = (source / study / target.name, source / file["path"])
                found = next((place for place in places if place.is_file()), None)
                if found is None:
                    raise InputError(f"--from: has neither {places[0]} nor {places[1]}")
                address = found.resolve().as_uri()
            try:
                fetch(address, target, file["sha256"])
            except InputError as error:
                if source is not None:
                    raise
                raise InputError(
                    f"{error}; without a network: `replicate fetch-traces --from FOLDER`, a clone "
                    f"of https://github.com/{published.repository}. Without traces `make report` "
                    "compares the summary figures that the project has"
                ) from None
            count += 1
    return f"{FOLDER}: {count} traces of {', '.join(studies)}; the next `make report` compares them"
