"""Self-consistency: a claim's test applied to what the paper prints, or to its published traces.

A printed number describes points, a metric, flows and a window. It serves a claim's quantity with
the same four, whatever the aggregate, since the aggregate of a printed number is our reading; only
Jain's index is a different number. A number marked `not_comparable` is left out. What is not
printed comes from the raw traces, if there are any, in the shape of our results.

A `trace:<stem>` table names the point of a trace and, in its rows, the flows. Published runs of one
point are its replicates. Delays, timeouts and queues are undefined, because `ss` does not sample
them. Rates are its delivery rates, weighted by time, zero where it prints none. Their sum is about
3 % low, so they only serve ratios.

A test of several parts counts the parts that can be computed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from replication.base.table import (
    FLOW_COLUMNS,
    SELF_CONSISTENCY_COLUMNS,
    SERIES_COLUMNS,
    Row,
    write_table,
)
from replication.design.config import load_study
from replication.metrics.cell_map import MappedCell, cells_of
from replication.metrics.metric_model import METRICS, MetricError, metric_label
from replication.metrics.sampled import SampledResults
from replication.metrics.trace import read_flows
from replication.metrics.trace_source import TABLE_PREFIX, has_traces, trace_files
from replication.study.claim_model import PublishedRun, Quantity, SimpleTest, ValueTest, sides
from replication.study.published import Table
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.audit import RATES
from replication.verdicts.claim import judge_statistic
from replication.verdicts.comparison import LookUp, UntestableError, compare
from replication.verdicts.sample import points_of, values_on
from replication.verdicts.wording import wording

#: The engine of the paper's own runs.
PUBLISHED = "published"
#: Flows of a trace are sampled at different times, and its windows are in segments.
_UNKNOWN = {"queue", "fairness"}, {"cwnd_bytes"}
SELF_CONSISTENCY = "self_consistency.csv"
HOLDS, FAILS, NONE = "holds", "fails", "none"
#: Where the numbers of a part come from.
PRINTED, TRACED = "printed numbers", "published traces"


def trace_results(study: Study, files: Mapping[str, Path]) -> SampledResults:
    """Return the traces of a study as results of the engine `PUBLISHED`.

    InputError: a file is no trace, or its number of flows is not that of the table's rows.
    """
    design: list[dict[str, Any]] = []
    series: list[pd.DataFrame] = []
    scenarios: dict[str, dict[str, Any]] = {}
    for table in study.tables:
        trace = table.id.removeprefix(TABLE_PREFIX)
        if trace == table.id or trace not in files:
            continue
        levels = {factor: key for factor, (key,) in table.where.items()}
        point = {"experiment": table.experiment, "levels": levels}
        design.append(
            {
                "experiment": table.experiment,
                "levels": levels,
                "point": trace,
                "replicate": sum(point.items() <= run.items() for run in design),
                "engine": PUBLISHED,
                "scenario": trace,
                "supported": True,
                "reason": "",
            }
        )
        raw = read_flows(files[trace], list(table.rows or {}))
        first_s = min(float(samples["time_s"].min()) for samples in raw.values())
        flows = [_series(trace, _name(table, row), raw[row], first_s) for row in raw]
        series += flows
        scenarios[trace] = _scenario(flows)
    totals = [_totals(flow) for flow in series]
    return SampledResults(
        study_id=study.id,
        design=pd.DataFrame(design),
        flows=pd.DataFrame(totals, columns=list(FLOW_COLUMNS)),
        scenarios=scenarios,
        read_series=partial(pd.concat, series, ignore_index=True),
    )


def _name(table: Table, row: str) -> str:
    """Return the study's flow of a row of a trace's table, or the row if it has no single one."""
    flows = (table.rows or {})[row].flows
    return flows[0] if isinstance(flows, list) and len(flows) == 1 else row


def _series(trace: str, flow: str, samples: pd.DataFrame, first_s: float) -> pd.DataFrame:
    """Return the samples of a flow as a series, with times from the trace's first sample."""
    rates = samples.get("delivery_rate_bps")
    return pd.DataFrame(
        {
            "scenario": trace,
            "engine": PUBLISHED,
            "flow": flow,
            "time_s": samples["time_s"] - first_s,
            "cwnd_bytes": samples["cwnd_segments"],
            "ssthresh_bytes": samples["ssthresh_segments"],
            "throughput_bps": None if rates is None else rates.fillna(0),
            "rtt_s": samples.get("rtt_s"),
            "retransmissions": samples["retransmissions"].fillna(0).diff().fillna(0),
        }
    ).reindex(columns=list(SERIES_COLUMNS))


def _totals(series: pd.DataFrame) -> dict[str, Any]:
    rates = series["throughput_bps"].to_numpy(dtype=float)
    # A sample's rate is of what was delivered before it.
    rate = np.average(rates[1:], weights=np.diff(series["time_s"]))
    totals = dict.fromkeys(RATES, rate)
    return totals | {
        "scenario": series["scenario"].iloc[0],
        "engine": series["engine"].iloc[0],
        "flow": series["flow"].iloc[0],
        "kind": "tcp",
        "retransmissions": series["retransmissions"].sum(),
    }


def _scenario(flows: Sequence[pd.DataFrame]) -> dict[str, Any]:
    """Return the parts of a scenario that results need, with windows in segments.

    Flows first sampled together are in the order of their ports, which is that of connecting.
    """
    pace_s = max(float(flow["time_s"].diff().median()) for flow in flows)
    documents = []
    for flow in flows:
        first_s = float(flow["time_s"].min())
        documents.append(
            {
                "id": flow["flow"].iloc[0],
                "kind": "tcp",
                "start_s": first_s if first_s > pace_s else 0.0,
                "segment_bytes": 1,
            }
        )
    return {"duration_s": max(float(flow["time_s"].max()) for flow in flows), "flows": documents}


@dataclass(frozen=True)
class ConsistencyRow:
    """The result of a claim's test on the paper's own numbers: a row of self_consistency.csv."""

    study: str
    claim: str
    result: str
    reason: str


class _PartResult(NamedTuple):
    """The result of a part of a claim's test, and its reason."""

    result: str
    reason: str


class _PublishedValues(NamedTuple):
    """The values of a quantity, with replicate and factors, and where they come from."""

    source: str
    values: pd.DataFrame


class SelfConsistency:
    """Applies the tests of a study's claims to its printed numbers and its traces, by file name."""

    def __init__(
        self, study: Study, cells: Sequence[MappedCell], files: Mapping[str, Path]
    ) -> None:
        self.study = study
        self._printed = printed_numbers(study, cells)
        self._traces = trace_results(study, files)

    def rows(self) -> Iterator[ConsistencyRow]:
        """Yield the result of each claim's test."""
        for claim in self.study.claims:
            parts = [self._part(test) for test in claim.tests()]
            results = {part.result for part in parts}
            reasons = [part.reason for part in parts]
            if len(reasons) > 1:
                reasons = [f"({n}) {reason}" for n, reason in enumerate(reasons, start=1)]
            result, reason = NONE, ""
            if FAILS in results or HOLDS in results:
                result = FAILS if FAILS in results else HOLDS
                reason = " ".join(reasons)
            yield ConsistencyRow(self.study.id, claim.id, result, reason)

    def _part(self, test: SimpleTest) -> _PartResult:
        """Return the result of one test, and its reason."""
        if isinstance(test.expect, PublishedRun):
            return _PartResult(NONE, "Our runs are compared with the published value itself.")
        alone = isinstance(test, ValueTest)
        try:
            published = [self._values(wanted, alone) for wanted in sides(test)]
            comparison = compare(self.study, test, [side.values for side in published])
        except UntestableError as error:
            return _PartResult(NONE, f"Not testable: {error}")
        sources = sorted({side.source for side in published})
        words = wording(self.study, test)
        if sources == [PRINTED] and len(comparison.values) > 1:
            words = replace(words, sample="printing")
        judgement = judge_statistic(test, comparison, words)
        result = HOLDS if judgement.verdict == Verdict.REPRODUCED else FAILS
        return _PartResult(result, f"From the {' and '.join(sources)}: {judgement.reason}")

    def _values(self, wanted: Quantity, alone: bool) -> _PublishedValues:
        """Return the published values of a quantity.

        `alone`: the quantity is compared with a bound, not with another quantity.
        """
        factors = [factor.id for factor in self.study.experiment(wanted.experiment).factors]
        needed = points_of(self.study, wanted)
        for source in (PRINTED, TRACED):
            frame = self._printed(wanted) if source == PRINTED else self._traced(wanted, alone)
            if not frame.empty and len(frame.drop_duplicates(factors)) == needed:
                return _PublishedValues(source, frame)
        label = metric_label(wanted.metric)
        raise UntestableError(f"the paper does not publish {label} at every point.")

    def _traced(self, wanted: Quantity, alone: bool) -> pd.DataFrame:
        """Return the values of a quantity in the traces, none if they do not sample it."""
        sources, metrics = _UNKNOWN
        unknown = METRICS[wanted.metric].source in sources or wanted.metric in metrics
        only_ratios = alone and wanted.metric in RATES and wanted.aggregate != "jain"
        if unknown or only_ratios or self._traces.design.empty:
            return pd.DataFrame()
        try:
            return values_on(self._traces, PUBLISHED, wanted).dropna(subset="value")
        except MetricError:
            # No trace has these flows.
            return pd.DataFrame()


def printed_numbers(study: Study, cells: Sequence[MappedCell]) -> LookUp:
    """Return a function that looks up a quantity among the printed numbers of single points."""
    numbers: dict[str, list[dict[str, object]]] = {}
    for cell in cells:
        wanted = cell.quantity
        factors = {factor.id for factor in study.experiment(wanted.experiment).factors}
        points = {factor: keys[0] for factor, keys in wanted.where.items() if len(keys) == 1}
        derived = cell.table.startswith(TABLE_PREFIX)
        if derived or cell.is_spread or cell.not_comparable or points.keys() != factors:
            continue
        twins = numbers.setdefault(_kind(wanted), [])
        number = sum(points.items() <= other.items() for other in twins)
        twins.append({**points, "replicate": number, "value": cell.value})

    def look_up(wanted: Quantity) -> pd.DataFrame:
        rows = numbers.get(_kind(wanted), [])
        where = wanted.where.items()
        chosen = [row for row in rows if all(row[factor] in keys for factor, keys in where)]
        return pd.DataFrame(chosen)

    return look_up


def _kind(wanted: Quantity) -> str:
    kept = {"experiment", "metric", "flows", "window_s", "links"}
    return f"{wanted.model_dump_json(include=kept)} {wanted.aggregate == 'jain'}"


def write_self_consistency(root: Path, data: Path, study: str, kept: Sequence[Row] = ()) -> None:
    """Write a study's self_consistency.csv.

    If the study has traces that are not on this machine, the rows of `kept` are written instead.
    """
    document = load_study(root, study)
    files = trace_files(root, study)
    rows: Iterable[Mapping[str, object]] = kept
    if not kept or files or not has_traces(document):
        cells = cells_of(root, document)
        rows = map(vars, SelfConsistency(document, cells, files).rows())
    write_table(data / "evaluation" / study / SELF_CONSISTENCY, rows, SELF_CONSISTENCY_COLUMNS)
