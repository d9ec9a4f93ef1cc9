"""The paper's own runs as results: published traces in the shape of ours, for the same tests.

A `trace:<stem>` table says of which point a trace is and, by its rows, of which flows. Published
runs of one point are its replicates. What `ss` does not sample is undefined: delays, timeouts,
queues. Rates are its delivery rates, weighted by time, zero where it prints none; they are some
3 % low in sum, so that they are fit for ratios alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from replication.measure.metric_model import METRICS
from replication.measure.sampled import SampledResults
from replication.measure.trace import read_flows
from replication.measure.trace_folder import TABLE_PREFIX
from replication.study.claim_model import Quantity
from replication.study.storage.table import FLOW_COLUMNS, SERIES_COLUMNS
from replication.study.study import Study
from replication.study.table_model import Table

#: Stands for an engine where the runs are the paper's own.
PUBLISHED = "published"
RATES = ("throughput_bps", "goodput_bps")
#: Samples of different flows have times of their own, and segments no size.
_UNKNOWN = {"queue", "fairness"}, {"cwnd_bytes"}


def can_tell(wanted: Quantity, alone: bool) -> bool:
    """Return whether traces can tell a quantity; `alone`: it is set against a bound, not another.

    See the module's docstring.
    """
    sources, metrics = _UNKNOWN
    if METRICS[wanted.metric].source in sources or wanted.metric in metrics:
        return False
    return not (alone and wanted.metric in RATES and wanted.aggregate != "jain")


def trace_results(study: Study, files: Mapping[str, Path]) -> SampledResults:
    """Return the traces of a study as results of an engine called `PUBLISHED`.

    Parameters
    ----------
    study
        The study.
    files
        Raw traces, by name.

    Raises
    ------
    InputError
        A raw trace is not one, or has another number of flows than its table has rows.
    """
    design: list[dict[str, Any]] = []
    flows: list[dict[str, Any]] = []
    samples: list[pd.DataFrame] = []
    scenarios: dict[str, dict[str, Any]] = {}
    for table in study.tables:
        trace = table.id.removeprefix(TABLE_PREFIX)
        if trace not in files or not table.id.startswith(TABLE_PREFIX):
            continue
        point = {
            "experiment": table.experiment,
            "levels": {factor: key for factor, (key,) in table.where.items()},
        }
        twins = sum(point.items() <= run.items() for run in design)
        run = {"point": trace, "replicate": twins, "engine": PUBLISHED, "scenario": trace}
        design.append({**point, **run, "supported": True, "reason": ""})
        raw = read_flows(files[trace], list(table.rows or {}))
        series = _series(trace, {_name(table, row): one for row, one in raw.items()})
        samples += series.values()
        flows += [_totals(trace, flow, one) for flow, one in series.items()]
        scenarios[trace] = _scenario(series)
    return SampledResults(
        study_id=study.id,
        design=pd.DataFrame(design),
        flows=pd.DataFrame(flows, columns=list(FLOW_COLUMNS)),
        scenarios=scenarios,
        read_series=partial(pd.concat, samples, ignore_index=True),
    )


def _name(table: Table, row: str) -> str:
    """Return the flow that a row of a trace's table stands for: the study's own, or the row."""
    flows = (table.rows or {})[row].flows
    return flows[0] if isinstance(flows, list) and len(flows) == 1 else row


def _series(trace: str, raw: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the samples of each flow in the columns of a series, in s from the trace's first."""
    first_s = min(float(samples["time_s"].min()) for samples in raw.values())
    return {
        flow: pd.DataFrame(
            {
                "scenario": trace,
                "engine": PUBLISHED,
                "time_s": samples["time_s"] - first_s,
                "flow": flow,
                "cwnd_bytes": samples["cwnd_segments"],
                "ssthresh_bytes": samples["ssthresh_segments"],
                "throughput_bps": _rates(samples),
                "rtt_s": samples.get("rtt_s"),
                "retransmissions": samples["retransmissions"].fillna(0).diff().fillna(0),
            }
        ).reindex(columns=list(SERIES_COLUMNS))
        for flow, samples in raw.items()
    }


def _rates(samples: pd.DataFrame) -> pd.Series[float] | None:
    """Return the delivery rates, zero where none is printed; None for a trace that has none."""
    return samples["delivery_rate_bps"].fillna(0) if "delivery_rate_bps" in samples else None


def _totals(trace: str, flow: str, series: pd.DataFrame) -> dict[str, Any]:
    rates = series["throughput_bps"].to_numpy(dtype=float)
    # A rate is of what was delivered before its sample.
    rate = np.average(rates[1:], weights=np.diff(series["time_s"]))
    run = {"scenario": trace, "engine": PUBLISHED, "flow": flow, "kind": "tcp"}
    return {**run, **dict.fromkeys(RATES, rate), "retransmissions": series["retransmissions"].sum()}


def _scenario(series: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """Return what a scenario says that results are read with; windows are in segments.

    Flows that were first sampled together are in the order of their ports, in which they connected.
    """
    pace_s = max(float(one["time_s"].diff().median()) for one in series.values())
    first = {flow: float(one["time_s"].min()) for flow, one in series.items()}
    starts = {flow: start if start > pace_s else 0.0 for flow, start in first.items()}
    return {
        "duration_s": max(float(one["time_s"].max()) for one in series.values()),
        "flows": [
            {
                "id": flow,
                "kind": "tcp",
                "segment_bytes": 1,
                "start_s": start,
            }
            for flow, start in starts.items()
        ],
    }
