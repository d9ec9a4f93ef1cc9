"""The notebooks' fixture: a small, committed cut of a run, with the layout of the data folder.

It holds what the notebooks show: designs, scenarios, flows and verdicts whole, and of the series
and windows those that are drawn, rounded to six digits.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from replication.compare.trace_comparison import COMPARISON, NEARNESS, PUBLISHED, WINDOWS
from replication.judge.evaluate import merge
from replication.judge.self_consistency import OWN_DATA
from replication.judge.vacuity import VACUITY
from replication.judge.verdict_table import NAME as VERDICTS
from replication.measure.results import Results
from replication.measure.trace_folder import has_traces
from replication.plan.config import load_study
from replication.report.notebooks.notebook import refresh
from replication.sensitivity.explanation import EXPLANATIONS
from replication.sensitivity.explore_study import TABLES
from replication.sensitivity.maps.account import accounts, read_account
from replication.study.errors import InputError
from replication.study.files import atomic, read_json, write_text
from replication.study.storage.parquet import read_parquet, write_parquet
from replication.study.storage.table import SERIES_NUMBERS
from replication.study.study import Study

LIMIT_BYTES = 6_000_000
#: Types of experiment whose series are drawn, and whether every replicate is.
DRAWN = {"queuing": True, "bdp_jain": True, "cwnd_traces": False}
#: Of the provenance, what says which run it was; not on whose machine.
PROVENANCE = ("config", "engines", "studies", "tier")
#: Maps that a notebook takes apart; a quick run's are too coarse for it.
MAPPED = ("kapadia_bbr_beside_reno",)
_EVALUATION = (
    *("audit.csv", "quantities.csv"),
    *(VACUITY, OWN_DATA, VERDICTS),
)


def make_fixture(root: Path, data: Path, output: Path, studies: Sequence[str]) -> int:
    """Cut a fixture from a run and return its size in bytes.

    Parameters
    ----------
    root
        The project's folder.
    data
        Results of a quick run (``data/reproduced``).
    output
        Folder to replace (``notebooks/fixture``).
    studies
        Ids of the studies to cut.

    Raises
    ------
    InputError
        Results are missing, or the fixture would be above 6 MB; `output` is then as it was.
    """
    work = output.parent / f".{output.name}.new"
    shutil.rmtree(work, ignore_errors=True)
    try:
        documents = [load_study(root, study) for study in studies]
        for document in documents:
            _cut_study(document, data, work)
        merge([work / "evaluation" / study for study in studies], work)
        if any(has_traces(document) for document in documents):
            cut_traces(data, work)
        _cut_provenance(data / "provenance.json", work / "provenance.json")
        _cut_sensitivity([data, output], studies, work)
        _cut_maps([data, output], work)
        size = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
        if size > LIMIT_BYTES:
            raise InputError(
                f"{output}: would have {size} bytes, above {LIMIT_BYTES}; cut it from tier quick"
            )
        shutil.rmtree(output, ignore_errors=True)
        work.rename(output)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return size


def refresh_notebooks(folder: Path) -> list[Path]:
    """Execute every notebook of a folder on the fixture and store its outputs in it."""
    paths = sorted(folder.glob("*.ipynb"))
    for path in paths:
        refresh(path)
    return paths


def _cut_study(study: Study, data: Path, output: Path) -> None:
    results = Results.load(data, study.id)
    for name in (f"design/{study.id}.csv", f"design/scenarios/{study.id}.json"):
        _copy(data / name, output / name)
    folder = output / "results" / study.id
    folder.mkdir(parents=True)
    _copy(data / "results" / study.id / "flows.parquet", folder / "flows.parquet")
    series = _cut_series(study, results)
    write_parquet(pa.Table.from_pandas(series, preserve_index=False), folder / "series.parquet")
    for name in _EVALUATION:
        path = Path("evaluation") / study.id / name
        _copy(data / path, output / path)


def _cut_series(study: Study, results: Results) -> pd.DataFrame:
    wanted: set[str] = set()
    for experiment in study.experiments:
        if experiment.type in DRAWN:
            runs = results.runs(experiment.id, {})
            runs = runs if DRAWN[experiment.type] else runs[runs["replicate"] == 0]
            wanted |= set(runs["scenario"])
    series: pd.DataFrame = read_parquet(results.series_path).to_pandas()
    series = series[series["scenario"].isin(wanted)].reset_index(drop=True)
    for column in SERIES_NUMBERS:
        series[column] = _rounded(series[column].to_numpy(dtype=float))
    return series


def _rounded(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def cut_traces(data: Path, output: Path) -> None:
    """Cut the comparison of traces; the raw published windows are not ours to keep."""
    for name in (COMPARISON, NEARNESS):
        _copy(data / name, output / name)
    windows = read_parquet(data / WINDOWS).to_pandas()
    ours = windows[windows["source"] != PUBLISHED].reset_index(drop=True)
    for column in ("time_s", "cwnd_segments"):
        ours[column] = _rounded(ours[column].to_numpy(dtype=float))
    write_parquet(pa.Table.from_pandas(ours, preserve_index=False), output / WINDOWS)


def _cut_sensitivity(sources: Sequence[Path], studies: Sequence[str], output: Path) -> None:
    """Copy the tables of the sensitivity of each study from the first of `sources` that has them.

    They do not come from a quick run: without a run of their own the last ones are kept.
    """
    for study in studies:
        folder = Path("sensitivity") / study
        source = next((s / folder for s in sources if (s / folder / "claims.csv").is_file()), None)
        for table in (*TABLES, *EXPLANATIONS) if source else ():
            _copy((source or output) / f"{table}.csv", output / folder / f"{table}.csv")


def _cut_maps(sources: Sequence[Path], output: Path) -> None:
    """Copy the accounts of the maps that are shown from the first of `sources` that has any."""
    found = next((own for s in sources if (own := shown_maps(s))), [])
    for path in found:
        _copy(path, output / "maps" / path.parent.name / path.name)


def shown_maps(data: Path) -> list[Path]:
    """Return the accounts of the maps that the notebooks show, of tier paper alone."""
    return [
        path
        for path in accounts(data)
        if path.parent.name in MAPPED and read_account(path)["tier"] == "paper"
    ]


def _cut_provenance(source: Path, target: Path) -> None:
    if source.is_file():
        document = read_json(source)
        kept = {key: document[key] for key in PROVENANCE if key in document}
        write_text(target, json.dumps(kept, indent=2, sort_keys=True) + "\n")


def _copy(source: Path, target: Path) -> None:
    if not source.is_file():
        raise InputError(f"{source}: no such file; run the workflow first")
    with atomic(target) as temporary:
        temporary.write_bytes(source.read_bytes())
