"""Self-consistency: a claim's test on what the paper itself prints, or on its published traces.

A printed number stands for points, a metric, flows and a window. A claim's quantity of the same
reads it whatever its aggregate: what a printed number aggregates is our reading and not the
paper's. Only Jain's index is another number than the rates that it is of. A number that is said to
be of another thing than its metric (`not_comparable`) says nothing. What is not printed is taken
from the raw traces, where there are any, in the shape of our results.

A `trace:<stem>` table says of which point a trace is and, by its rows, of which flows. Published
runs of one point are its replicates. What `ss` does not sample is undefined: delays, timeouts,
queues. Rates are its delivery rates, weighted by time, zero where it prints none; they are some
3 % low in sum, so that they are fit for ratios alone.

`holds` is what would be `reproduced`, `fails` everything else; `none` where a side has no number at
one of its points. Of a test in parts those count that can be had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from replication.design.config import load_study
from replication.metrics.cell_map import MappedCell, map_cells
from replication.metrics.metric_model import METRICS, MetricError, metric_label
from replication.metrics.sampled import SampledResults
from replication.metrics.trace import TABLE_PREFIX, has_traces, read_flows, trace_files
from replication.study.claim_model import PublishedRun, Quantity, SimpleTest, ValueTest
from replication.study.published import Table, published_path, read_published
from replication.study.storage.table import (
    FLOW_COLUMNS,
    SELF_CONSISTENCY_COLUMNS,
    SERIES_COLUMNS,
    Row,
    write_table,
)
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.claim import INTERVAL_DECIDES, conditions, judge_statistic
from replication.verdicts.comparison import UntestableError, compare
from replication.verdicts.sample import points_of, values_on
from replication.verdicts.wording import wording

#: Stands for an engine where the runs are the paper's own.
PUBLISHED = "published"
RATES = ("throughput_bps", "goodput_bps")
#: Samples of different flows have times of their own, and segments no size.
_UNKNOWN = {"queue", "fairness"}, {"cwnd_bytes"}
SELF_CONSISTENCY = "self_consistency.csv"
HOLDS, FAILS, NONE = "holds", "fails", "none"
#: Where a part's numbers come from, in words.
PRINTED, TRACED = "printed numbers", "published traces"


def trace_results(study: Study, files: Mapping[str, Path]) -> SampledResults:
    """Return the traces of a study, by name, as results of an engine called `PUBLISHED`.

    InputError where a raw trace is not one, or has another number of flows than its table rows.
    """
    design: list[dict[str, Any]] = []
    series: list[pd.DataFrame] = []
    flows: list[dict[str, Any]] = []
    scenarios: dict[str, dict[str, Any]] = {}
    for table in study.tables:
        trace = table.id.removeprefix(TABLE_PREFIX)
        if trace not in files or not table.id.startswith(TABLE_PREFIX):
            continue
        levels = {factor: key for factor, (key,) in table.where.items()}
        point = {"experiment": table.experiment, "levels": levels}
        twins = sum(point.items() <= run.items() for run in design)
        run = {"point": trace, "replicate": twins, "engine": PUBLISHED, "scenario": trace}
        design.append({**point, **run, "supported": True, "reason": ""})
        raw = read_flows(files[trace], list(table.rows or {}))
        first_s = min(float(samples["time_s"].min()) for samples in raw.values())
        own = [_series(trace, _name(table, row), samples, first_s) for row, samples in raw.items()]
        series += own
        flows += [_totals(one) for one in own]
        scenarios[trace] = _scenario(own)
    return SampledResults(
        study_id=study.id,
        design=pd.DataFrame(design),
        flows=pd.DataFrame(flows, columns=list(FLOW_COLUMNS)),
        scenarios=scenarios,
        read_series=partial(pd.concat, series, ignore_index=True),
    )


def _name(table: Table, row: str) -> str:
    """Return the flow that a row of a trace's table stands for: the study's own, or the row."""
    flows = (table.rows or {})[row].flows
    return flows[0] if isinstance(flows, list) and len(flows) == 1 else row


def _series(trace: str, flow: str, samples: pd.DataFrame, first_s: float) -> pd.DataFrame:
    """Return the samples of a flow in the columns of a series, in s from the trace's first."""
    rates = None
    if "delivery_rate_bps" in samples:
        rates = samples["delivery_rate_bps"].fillna(0)
    return pd.DataFrame(
        {
            **{"scenario": trace, "engine": PUBLISHED, "flow": flow},
            "time_s": samples["time_s"] - first_s,
            "cwnd_bytes": samples["cwnd_segments"],
            "ssthresh_bytes": samples["ssthresh_segments"],
            "throughput_bps": rates,
            "rtt_s": samples.get("rtt_s"),
            "retransmissions": samples["retransmissions"].fillna(0).diff().fillna(0),
        }
    ).reindex(columns=list(SERIES_COLUMNS))


def _totals(series: pd.DataFrame) -> dict[str, Any]:
    rates = series["throughput_bps"].to_numpy(dtype=float)
    # A rate is of what was delivered before its sample.
    rate = np.average(rates[1:], weights=np.diff(series["time_s"]))
    run = {name: series[name].iloc[0] for name in ("scenario", "engine", "flow")}
    counted = {"kind": "tcp", "retransmissions": series["retransmissions"].sum()}
    return {**run, **counted, **dict.fromkeys(RATES, rate)}


def _scenario(flows: Sequence[pd.DataFrame]) -> dict[str, Any]:
    """Return what a scenario says that results are read with; windows are in segments.

    Flows that were first sampled together are in the order of their ports, in which they connected.
    """
    pace_s = max(float(one["time_s"].diff().median()) for one in flows)
    documents = []
    for one in flows:
        first_s = float(one["time_s"].min())
        start = {"start_s": first_s if first_s > pace_s else 0.0, "segment_bytes": 1}
        documents.append({"id": one["flow"].iloc[0], "kind": "tcp", **start})
    return {"duration_s": max(float(one["time_s"].max()) for one in flows), "flows": documents}


class SelfConsistency:
    """What a paper printed or published as traces, by name, to be asked for as quantities."""

    def __init__(
        self, study: Study, cells: Sequence[MappedCell], files: Mapping[str, Path]
    ) -> None:
        self.study = study
        self._printed = printed_numbers(study, cells)
        self._traces = trace_results(study, files)

    def rows(self) -> Iterable[Row]:
        """Yield how each claim's test fares: the rows of self_consistency.csv."""
        for claim in self.study.claims:
            parts = [self._part(test) for test in claim.tests()]
            words = {word for word, _ in parts}
            result = next((word for word in (FAILS, HOLDS) if word in words), NONE)
            texts = [text for _, text in parts]
            if len(texts) > 1:
                texts = [f"({n}) {text}" for n, text in enumerate(texts, start=1)]
            reason = "" if result == NONE else " ".join(texts)
            names = {"study": self.study.id, "claim": claim.id}
            yield {**names, "result": result, "reason": reason}

    def _part(self, test: SimpleTest) -> tuple[str, str]:
        """Return the word on one test, and what was found."""
        expect, direction = conditions(test)
        if isinstance(expect, PublishedRun):
            return NONE, "The published value is what our runs are held against."
        sources: set[str] = set()

        def look_up(side: str, wanted: Quantity) -> pd.DataFrame:
            source, frame = self._values(wanted, isinstance(test, ValueTest))
            sources.add(source)
            return frame

        try:
            comparison = compare(self.study, test, look_up)
        except UntestableError as error:
            return NONE, f"No number of the paper's own: {error}"
        words = wording(self.study, test)
        if sources == {PRINTED} and len(comparison.values) > 1:
            words = replace(words, sample="printing")
        decides = isinstance(test, INTERVAL_DECIDES)
        judgement = judge_statistic(comparison, expect, direction, words, decides)
        word = HOLDS if judgement.verdict == Verdict.REPRODUCED else FAILS
        return word, f"By the {' and '.join(sorted(sources))}: {judgement.reason}"

    def _values(self, wanted: Quantity, alone: bool) -> tuple[str, pd.DataFrame]:
        """Return the source of a quantity's values, and the values: replicate, factors, value.

        `alone`: it is set against a bound, not another. UntestableError where some of its points
        have none.
        """
        frame, label = self._printed(wanted), metric_label(wanted.metric)
        if not frame.empty and self._is_whole(wanted, frame):
            return PRINTED, frame
        frame = self._traced(wanted, alone)
        if frame.empty:
            raise UntestableError(f"{label}: neither printed nor in a trace.")
        if not self._is_whole(wanted, frame):
            raise UntestableError(f"{label}: not published at every point.")
        return TRACED, frame

    def _traced(self, wanted: Quantity, alone: bool) -> pd.DataFrame:
        """Return what traces can tell of a quantity; see the module's docstring."""
        sources, metrics = _UNKNOWN
        unknown = METRICS[wanted.metric].source in sources or wanted.metric in metrics
        only_ratios = alone and wanted.metric in RATES and wanted.aggregate != "jain"
        if unknown or only_ratios or self._traces.design.empty:
            return pd.DataFrame()
        try:
            return values_on(self._traces, PUBLISHED, wanted).dropna(subset="value")
        except MetricError:
            # The flows that are meant are in no trace.
            return pd.DataFrame()

    def _is_whole(self, wanted: Quantity, frame: pd.DataFrame) -> bool:
        factors = [factor.id for factor in self.study.experiment(wanted.experiment).axes]
        return len(frame.drop_duplicates(factors)) == points_of(self.study, wanted)


def printed_numbers(
    study: Study, cells: Sequence[MappedCell]
) -> Callable[[Quantity], pd.DataFrame]:
    """Return what looks up a quantity among the printed numbers of single points."""
    numbers: dict[str, list[dict[str, object]]] = {}
    for cell in cells:
        wanted = cell.quantity
        factors = {factor.id for factor in study.experiment(wanted.experiment).axes}
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
        return pd.DataFrame([row for row in rows if all(row[f] in keys for f, keys in where)])

    return look_up


def _kind(wanted: Quantity) -> str:
    kept = {"experiment", "metric", "flows", "window_s", "links"}
    return f"{wanted.model_dump_json(include=kept)} {wanted.aggregate == 'jain'}"


def write_self_consistency(root: Path, data: Path, study: str, kept: Sequence[Row] = ()) -> None:
    """Write a study's self_consistency.csv: how each claim's test fares on the paper's own data.

    The rows of `kept` stand where the raw traces are not there to judge from.
    """
    document, files = load_study(root, study), trace_files(root, study)
    rows: Iterable[Row] = kept
    if not kept or files or not has_traces(document):
        cells = map_cells(document, read_published(published_path(root, study)))
        rows = SelfConsistency(document, cells, files).rows()
    write_table(data / "evaluation" / study / SELF_CONSISTENCY, rows, SELF_CONSISTENCY_COLUMNS)
