"""Published traces: which flows of a study have one, and where the raw files are.

A study has traces where a table is called ``trace:<stem>``: its rows are the flows of the trace
and map to flows of an experiment, its published numbers are summary figures of the trace. The raw
traces themselves are not part of the project. They are looked for in ``<folder>/<study>/``, the
folder being that of `REPLICATION_TRACES`, by default ``../shared/traces`` beside the project; an
empty `REPLICATION_TRACES` means none. Without them the summary figures are compared alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from replication.cell import MappedCell, map_cells, read_published
from replication.claim_model import Quantity
from replication.errors import InputError
from replication.files import sha256_of
from replication.study import Study
from replication.trace import TRACE_SUFFIX, TraceFormatError, read_flows
from replication.window import Samples

ENVIRONMENT = "REPLICATION_TRACES"
DEFAULT_FOLDER = Path("..") / "shared" / "traces"
TABLE_PREFIX = "trace:"


@dataclass(frozen=True)
class PublishedFlow:
    """One flow of a published trace.

    Attributes
    ----------
    trace, flow
        The trace's file name without its suffix, and the flow's name in it.
    quantity
        The points and flows that rebuild it; its metric is that of any of the summary figures.
    summary
        Metric of `replication.metric` to the summary figure of the trace.
    samples
        The raw trace; None where it is not there.
    """

    trace: str
    flow: str
    quantity: Quantity
    summary: Mapping[str, float]
    samples: Samples | None


def has_traces(study: Study) -> bool:
    """Return whether traces were published with a study."""
    return any(table.id.startswith(TABLE_PREFIX) for table in study.tables)


def find_folder(root: Path, given: Path | None = None) -> Path | None:
    """Return the folder that holds a folder of raw traces for each study, or None.

    Parameters
    ----------
    root
        The project's folder.
    given
        A folder that takes the place of the environment's and the default one.

    Raises
    ------
    InputError
        A folder was asked for that is not there.
    """
    text = os.environ.get(ENVIRONMENT)
    if given is None and text == "":
        return None
    if given is None and text is None:
        default = root / DEFAULT_FOLDER
        return default if default.is_dir() else None
    folder = given or Path(str(text))
    if not folder.is_dir():
        raise InputError(
            f"{ENVIRONMENT}: {folder} is not a folder; name the one that holds <study>/*"
            f"{TRACE_SUFFIX}, or leave it empty to compare the committed figures alone"
        )
    return folder


def trace_files(folder: Path | None, study: str) -> dict[str, Path]:
    """Return trace name to file of the raw traces of a study; none without a folder."""
    files = sorted((folder / study).glob(f"*{TRACE_SUFFIX}")) if folder else []
    return {path.name.removesuffix(TRACE_SUFFIX): path for path in files}


def traces_hash(folder: Path | None, studies: Sequence[str]) -> str:
    """Return a hash over the raw traces of the studies; empty without any."""
    hashes = [
        f"{study}:{sha256_of(*files.values())}"
        for study in studies
        if (files := trace_files(folder, study))
    ]
    return " ".join(hashes)


def published_flows(
    study: Study, published: Path, files: Mapping[str, Path]
) -> list[PublishedFlow]:
    """Return the flows of a study's traces, in the order of its published numbers.

    Parameters
    ----------
    study
        The study.
    published
        CSV of its published numbers.
    files
        Raw traces, by name.

    Raises
    ------
    InputError
        A raw trace is not one, or lacks a flow that the published numbers have.
    """
    raw = {trace: read_flows(path) for trace, path in files.items()}
    mapped: dict[tuple[str, str], list[MappedCell]] = {}
    for cell in map_cells(study, read_published(published)):
        if cell.table.startswith(TABLE_PREFIX):
            mapped.setdefault((cell.table.removeprefix(TABLE_PREFIX), cell.row), []).append(cell)
    flows = []
    for (trace, name), cells in mapped.items():
        if trace in raw and name not in raw[trace]:
            raise TraceFormatError(files[trace], f"no flow {name}, which {published} has")
        flows.append(
            PublishedFlow(
                trace=trace,
                flow=name,
                quantity=cells[0].quantity,
                summary={cell.cell.metric: cell.value for cell in cells},
                samples=_samples(raw[trace][name][1]) if trace in raw else None,
            )
        )
    return flows


def _samples(table: pd.DataFrame) -> Samples:
    return Samples.of(table["time_s"], table["cwnd_segments"], table["ssthresh_segments"])
