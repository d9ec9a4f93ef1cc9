"""Published traces of congestion windows: which there are, where, and the flows in them.

A study has traces where a table is called ``trace:<stem>``: its rows are the flows of the trace
and map to flows of an experiment, its published numbers are summary figures of the trace. The raw
traces, `ss` samples of TCP senders, are their authors': data/published/traces.yaml says where they
are, `make traces` puts them into data/traces. Without them the summary figures are compared alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from replication.study.errors import InputError
from replication.study.files import fetch, file_sha256, parse_yaml, sha256_of
from replication.study.model import Document
from replication.study.study import Study

#: A data flow has about as many samples as the busiest one; an iperf3 control connection a few.
DATA_FLOW_FRACTION = 0.10

TRIO_COLUMNS = (
    "time_s",
    "source",
    "retransmissions_in_flight",
    "retransmissions",
    "cwnd_segments",
    "ssthresh_segments",
)
#: What no sample can be without; the rest `ss` leaves out at times.
_NEEDED = ("time_s", "port", "cwnd_segments")
PAIR_COLUMNS = (*TRIO_COLUMNS[:2], "delivery_rate_kbps", "rtt_ms", *TRIO_COLUMNS[2:])


class TraceFormatError(InputError):
    """A trace file does not have the expected columns or numbers."""

    def __init__(self, path: Path, reason: str, line: int | None = None) -> None:
        place = str(path) if line is None else f"{path}: line {line}"
        super().__init__(
            f"{place}: {reason}; expected the CSV that the study's script makes of `ss -ein`"
        )


def read_trace(path: Path) -> pd.DataFrame:
    """Read one `ss` trace of all connections of a sender, a CSV without header.

    Returned are time_s, port, cwnd_segments, ssthresh_segments, retransmissions,
    retransmissions_in_flight and, in a pair trace, delivery_rate_bps and rtt_s; NaN where `ss`
    printed nothing: a count of zero or a threshold that is not set. TraceFormatError: a column is
    missing or holds anything but numbers.
    """
    try:
        raw = pd.read_csv(path, header=None, dtype=str, skip_blank_lines=False)
    except ValueError as error:
        # The parser's message names the line: "Expected 6 fields in line 3, saw 7".
        raise TraceFormatError(path, str(error).strip()) from error
    layouts = {len(names): names for names in (TRIO_COLUMNS, PAIR_COLUMNS)}
    if raw.shape[1] not in layouts:
        raise TraceFormatError(path, f"{raw.shape[1]} columns", 1)
    raw.columns = pd.Index(layouts[raw.shape[1]])
    return _numbers(path, raw)


def _numbers(path: Path, raw: pd.DataFrame) -> pd.DataFrame:
    counters = ["retransmissions_in_flight", "retransmissions"]
    # Before the first retransmission `ss` may print another counter in its place, such as
    # "sacked:1 rcv_space"; the study's script then cuts out that counter and the next word.
    raw.loc[raw["retransmissions"] == "rcv_space", counters] = None
    raw["port"] = raw.pop("source").str.rpartition(":")[2]
    trace: pd.DataFrame = raw.apply(pd.to_numeric, errors="coerce").astype(float)
    for name in raw:
        _check_numbers(path, raw[name], trace[name])
    trace["port"] = trace["port"].astype(int)
    if "rtt_ms" in trace:
        trace["rtt_s"] = trace.pop("rtt_ms") / 1e3
        trace["delivery_rate_bps"] = trace.pop("delivery_rate_kbps") * 1e3
    return trace


def _check_numbers(path: Path, texts: pd.Series[str], numbers: pd.Series[float]) -> None:
    """Raise TraceFormatError, with the line, for a text that is not a number or must be there."""
    known = np.isfinite(numbers)
    needed = texts.name in _NEEDED
    wrong = ~known if needed else texts.notna() & ~known
    if texts.name == "cwnd_segments":
        wrong |= numbers <= 0
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        shown = "nothing" if pd.isna(texts.iloc[row]) else repr(texts.iloc[row])
        kind = "a positive number" if texts.name == "cwnd_segments" else "a number"
        raise TraceFormatError(path, f"{texts.name} is {shown}, not {kind}", row + 1)


def split_data_flows(trace: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """Return the samples of each data flow of a trace by client port, ascending.

    The control connection of iperf3 is sampled only while a test is set up and closed.
    """
    counts = trace["port"].value_counts()
    data = counts.index[counts >= DATA_FLOW_FRACTION * counts.max()]
    return {
        int(port): trace[trace["port"] == port].sort_values("time_s", ignore_index=True)
        for port in sorted(data)
    }


def read_flows(path: Path, names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return the samples of each data flow of a trace; `names` are by ascending client port."""
    flows = split_data_flows(read_trace(path))
    if len(names) != len(flows):
        raise TraceFormatError(path, f"{len(flows)} data flows for {len(names)} names")
    return dict(zip(names, flows.values(), strict=True))


FOLDER = Path("data/traces")
SOURCES = Path("data/published/traces.yaml")
TABLE_PREFIX = "trace:"
#: How the name of a raw trace ends.
TRACE_SUFFIX = ".sender-ss.csv"


class TraceFile(Document):
    """Where a trace is in its authors' repository, and its hash."""

    path: str
    sha256: str


class TraceSource(Document):
    """The published traces of a study: a public repository on GitHub at a commit."""

    repository: str
    commit: str
    licence: str
    files: dict[str, TraceFile]


def has_traces(study: Study) -> bool:
    """Return whether traces were published with a study."""
    return any(table.id.startswith(TABLE_PREFIX) for table in study.tables)


def trace_files(root: Path, study: str) -> dict[str, Path]:
    """Return trace name to file of the raw traces of a study that are there."""
    files = sorted((root / FOLDER / study).glob(f"*{TRACE_SUFFIX}"))
    return {path.name.removesuffix(TRACE_SUFFIX): path for path in files}


def traces_hash(root: Path, studies: Sequence[str]) -> str:
    """Return a hash over the raw traces of the studies; empty without any."""
    files = {study: trace_files(root, study) for study in studies}
    return " ".join(f"{study}:{sha256_of(*own.values())}" for study, own in files.items() if own)


def fetch_traces(root: Path, source: Path | None = None) -> str:
    """Put the published traces into `FOLDER`, each with its hash; return a line that says so.

    `source` is a folder with ``<study>/<trace>.sender-ss.csv``, or a clone of the authors'
    repository; by default they come from GitHub. InputError where one cannot be had or differs.
    """
    studies = parse_yaml((root / SOURCES).read_bytes())
    count = 0
    for study, document in studies.items():
        published = TraceSource.model_validate(document)
        for name, file in published.files.items():
            target = root / FOLDER / study / f"{name}{TRACE_SUFFIX}"
            if source is None:
                _download(published, file, target)
            else:
                _copy([source / study / target.name, source / file.path], file, target)
            count += 1
    return f"{FOLDER}: {count} traces of {', '.join(studies)}; the next `make report` compares them"


def _download(published: TraceSource, file: TraceFile, target: Path) -> None:
    place = f"{published.repository}/{published.commit}/{file.path}"
    try:
        fetch(f"https://raw.githubusercontent.com/{place}", target, file.sha256)
    except InputError as error:
        raise InputError(
            f"{error}; without a network: `replicate fetch-traces --from FOLDER`, a clone of "
            f"https://github.com/{published.repository}. Without traces `make report` compares "
            "the summary figures that the project has"
        ) from None


def _copy(places: Sequence[Path], file: TraceFile, target: Path) -> None:
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise InputError(f"--from: has neither {places[0]} nor {places[1]}")
    if file_sha256(found) != file.sha256:
        raise InputError(f"{found}: differs from the published trace (SHA-256)")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(found, target)
