"""Published traces: which flows of a study have one, with its summary figures and samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from replication.measure.cell_map import MappedCell, map_cells
from replication.measure.cwnd import FloatArray
from replication.measure.trace import read_flows
from replication.measure.trace_folder import TABLE_PREFIX
from replication.measure.window import Samples
from replication.study.claim_model import Quantity
from replication.study.published import read_published
from replication.study.study import Study


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
        Metric of `measure.metric` to the summary figure of the trace.
    samples
        The raw trace; None where it is not there.
    rtt_s
        The raw trace's round trips; None where it has none.
    """

    trace: str
    flow: str
    quantity: Quantity
    summary: Mapping[str, float]
    samples: Samples | None
    rtt_s: FloatArray | None = None


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
        A raw trace is not one, or has another number of flows than its table has rows.
    """
    names = {table.id.removeprefix(TABLE_PREFIX): list(table.rows or {}) for table in study.tables}
    raw = {trace: read_flows(path, names[trace]) for trace, path in files.items() if trace in names}
    mapped: dict[tuple[str, str], list[MappedCell]] = {}
    for cell in map_cells(study, read_published(published)):
        if cell.table.startswith(TABLE_PREFIX):
            mapped.setdefault((cell.table.removeprefix(TABLE_PREFIX), cell.row), []).append(cell)
    flows = []
    for (trace, name), cells in mapped.items():
        table = raw[trace][name] if trace in raw else None
        flows.append(
            PublishedFlow(
                trace=trace,
                flow=name,
                quantity=cells[0].quantity,
                summary={cell.cell.metric: cell.value for cell in cells},
                samples=None if table is None else _samples(table),
                rtt_s=None if table is None or "rtt_s" not in table else known(table["rtt_s"]),
            )
        )
    return flows


def known(numbers: pd.Series[float]) -> FloatArray:
    """Return the numbers of a column without the missing ones."""
    return np.asarray(numbers.dropna(), dtype=np.float64)


def _samples(table: pd.DataFrame) -> Samples:
    return Samples.of(table["time_s"], table["cwnd_segments"], table["ssthresh_segments"])
