"""Collection: a study's runs joined, and the features of their series.

Every batch keeps the whole series of its runs. Collected are the flows, the features for the
study's claims, tables, congestion checks and engine comparisons, and the series that charts draw. A
new window is computed from the batches, without simulating again.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from replication.base.table import (
    FEATURE_COLUMNS,
    SERIES_COLUMNS,
    flat,
    in_order,
    read_design,
    read_parquet,
    write_parquet,
)
from replication.metrics.metric import chosen_flows, flow_subjects, monitored_links, subjects
from replication.metrics.metric_model import METRICS, digested_experiments, wanted_quantities
from replication.metrics.results import Results, Window, window_name
from replication.metrics.same_run import compared_windows, digest_subjects
from replication.metrics.sampled import RUN, SERIES_DIGEST, SHARE_AT_WINDOW, SampledResults
from replication.study.claim_model import Quantity
from replication.study.finding_model import Finding
from replication.study.study import Study

#: Types of experiment whose charts over time show every replicate, not only the first.
DRAWN_WHOLE = ("queuing", "bdp_jain")
#: The type of experiment whose one-way delay is drawn over time.
_DELAYED = "queuing"
#: Batches are read together up to so many samples, about 100 MB.
_SAMPLES = 300_000
#: A flow with more samples than charts can show gets those of a longer interval, at most so many.
_MOST, _SHOWN = 1_000, 240
_TEXTS = {name: object for name in ("scenario", "engine", "flow", "link")}
FLOW_KEYS = ("engine", "scenario", "flow")
SERIES_KEYS = ("engine", "scenario", "time_s", "flow", "link")
#: This order puts like values next to each other, which makes the file smaller.
FEATURE_KEYS = ("metric", "window", "engine", "scenario", "subject")


def features_of(results: SampledResults, wanted: Sequence[Quantity]) -> pd.DataFrame:
    """Return the features `wanted` of runs, and those of the congestion check."""
    at_window = flow_subjects(results.flows[results.flows["kind"] == "tcp"])
    links = monitored_links(results, results.flows)
    parts = [
        _rows(results, SHARE_AT_WINDOW, None, at_window),
        _rows(results, "queue_mean_packets", None, links),
    ]
    known = set(results.flows["flow"])
    for quantity in wanted:
        chosen = quantity.flows
        if isinstance(chosen, list):
            # These runs may lack a flow.
            chosen = [flow for flow in chosen if flow in known]
        flows = chosen_flows(results, results.runs(quantity.experiment, {}), chosen)
        of = subjects(results, METRICS[quantity.metric], flows, quantity)
        parts.append(_rows(results, quantity.metric, quantity.window_s, of))
    table = pd.concat(parts, ignore_index=True)
    # Experiments may share a run.
    return table.drop_duplicates(list(FEATURE_COLUMNS[:-1]), ignore_index=True)


def digests_of(
    results: SampledResults, compared: Sequence[tuple[Window, pd.DataFrame]]
) -> list[pd.DataFrame]:
    """Return the digests of TCP flows, for each window and the runs that have it; none or one."""
    parts = []
    for window_s, runs in compared:
        of = digest_subjects(results, runs)
        parts.append(_rows(results, SERIES_DIGEST, window_s, of))
    # Experiments may share a run.
    return [pd.concat(parts, ignore_index=True).drop_duplicates()] if parts else []


def _rows(results: SampledResults, metric: str, window_s: Window, of: pd.DataFrame) -> pd.DataFrame:
    values = results.values(metric, window_s, of)
    return values.assign(metric=metric, window=window_name(window_s))


def drawn_runs(study: Study, design: pd.DataFrame) -> pd.DataFrame:
    """Return scenario, engine and delayed (whether the delay is drawn) of the runs in charts."""
    parts = []
    for experiment in study.experiments:
        rows = design[design["supported"] & (design["experiment"] == experiment.id)]
        if experiment.type not in DRAWN_WHOLE:
            rows = rows.drop_duplicates(["point", "engine"])
        parts.append(rows[RUN].assign(delayed=experiment.type == _DELAYED))
    return _each_once(pd.concat(parts))


def _each_once(drawn: pd.DataFrame) -> pd.DataFrame:
    """Return each run once; its delay is drawn if any experiment draws it."""
    runs = drawn.sort_values("delayed", kind="stable")
    return runs.drop_duplicates(RUN, keep="last", ignore_index=True)


def coarser(samples: pd.DataFrame) -> pd.DataFrame:
    """Return samples of flows and links; those with more than 1,000 get a longer interval.

    It is a whole multiple of theirs: rates and delays are means over it, lost and repeated packets
    are counted in it, all else is the last sample.
    """
    parts = []
    for _, subject in samples.groupby([*RUN, "flow", "link"], sort=False, dropna=False):
        multiple = math.ceil(len(subject) / _SHOWN) if len(subject) > _MOST else 1
        parts.append(_joined(subject.sort_values("time_s"), multiple) if multiple > 1 else subject)
    return pd.concat(parts) if parts else samples


def _joined(subject: pd.DataFrame, multiple: int) -> pd.DataFrame:
    starts = np.arange(0, len(subject), multiple)
    counts = np.diff(starts, append=len(subject))
    joined = subject.iloc[starts + counts - 1].copy()
    for name in ("drops", "retransmissions"):
        joined[name] = np.add.reduceat(subject[name].to_numpy(float), starts)
    for name in ("throughput_bps", "delay_s"):
        joined[name] = np.add.reduceat(subject[name].to_numpy(float), starts) / counts
    return joined


def collect_study(study: Study, data: Path, findings: Sequence[Finding] = ()) -> None:
    """Write a study's flows, features and series as Parquet files from the batches in `data`.

    The features are those of the study and of its `findings`.
    """
    folder = data / "results" / study.id
    batches = _batches(data, study.id)
    _write(_read(data, batches, "flows"), FLOW_KEYS, folder / "flows.parquet")
    by_setup = Results.load_each(data, study.id)
    wanted = wanted_quantities(study, findings)
    drawn = _each_once(pd.concat(drawn_runs(study, results.design) for results in by_setup))
    compared = [_compared(study, results) for results in by_setup]
    features, series = [], []
    for together, samples in _together(data, batches):
        runs = _read(data, together, "flows", columns=RUN).to_pandas().drop_duplicates()
        for results, windows in zip(by_setup, compared, strict=True):
            part = _part(results, runs, samples.to_pandas)
            if not part.design.empty:
                features.append(features_of(part, wanted))
                features += digests_of(part, windows)
        shown = samples.to_pandas().astype(_TEXTS).merge(drawn, on=RUN)
        shown["delay_s"] = shown["delay_s"].where(shown["delayed"])
        series.append(coarser(shown[list(SERIES_COLUMNS)]))
    feature_table = pd.concat(features, ignore_index=True)[list(FEATURE_COLUMNS)]
    # Set-ups may share a run.
    feature_table = feature_table.drop_duplicates(list(FEATURE_COLUMNS[:-1]))
    _write(_arrow(feature_table), FEATURE_KEYS, folder / "features.parquet")
    series_table = pd.concat(series, ignore_index=True)[list(SERIES_COLUMNS)]
    _write(_arrow(series_table), SERIES_KEYS, folder / "series.parquet")


def _arrow(table: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(table, preserve_index=False)


def _compared(study: Study, results: Results) -> list[tuple[Window, pd.DataFrame]]:
    """Return the windows in which replicates are compared, and the runs that have each."""
    every = [results.runs(experiment, {}) for experiment in digested_experiments(study)]
    return flat(compared_windows(results, runs) for runs in every)


def _part(
    results: Results, runs: pd.DataFrame, read_series: Callable[[], pd.DataFrame]
) -> SampledResults:
    """Return the results of those `runs` that are of the results' set-up, with their series."""
    design = results.design.merge(runs, on=RUN)
    return SampledResults(
        study_id=results.study_id,
        design=design,
        flows=results.flows.merge(runs, on=RUN),
        scenarios={name: results.scenarios[name] for name in design["scenario"].unique()},
        setup=results.setup,
        read_series=read_series,
    )


def load_sampled(data: Path, study: str, columns: Sequence[str]) -> SampledResults:
    """Load a study's results with `columns` of the whole series, from its batches."""
    results = Results.load(data, study)
    batches = _batches(data, study)
    names = ["scenario", "engine", "time_s", "flow", "link", *columns]
    return SampledResults(
        **vars(results),
        read_series=lambda: _read(data, batches, "series", columns=names).to_pandas(),
    )


def _batches(data: Path, study: str) -> list[str]:
    return sorted({row["batch"] for row in read_design(data, study) if row["batch"]})


def _together(data: Path, batches: Sequence[str]) -> Iterator[tuple[list[str], pa.Table]]:
    names: list[str] = []
    parts: list[pa.Table] = []
    for batch in batches:
        names.append(batch)
        parts.append(_read(data, [batch], "series"))
        if sum(map(len, parts)) >= _SAMPLES or batch == batches[-1]:
            yield names, pa.concat_tables(parts, promote_options="default")
            names, parts = [], []


def series_files(data: Path, study: str) -> list[Path]:
    """Return the files with the whole series of a study's runs."""
    return _paths(data, _batches(data, study), "series")


def _paths(data: Path, batches: Sequence[str], table: str) -> list[Path]:
    return [data / "batches" / f"{batch}.{table}.parquet" for batch in batches]


def _read(data: Path, batches: Sequence[str], table: str, **options: Any) -> pa.Table:
    paths = _paths(data, batches, table)
    keys = list(_TEXTS) if table == "series" else []
    tables = [read_parquet(p, read_dictionary=keys, **options) for p in paths]
    return pa.concat_tables(tables, promote_options="default")


def _write(table: pa.Table, keys: Sequence[str], path: Path) -> None:
    write_parquet(in_order(table, keys), path)
