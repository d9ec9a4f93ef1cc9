"""Published traces against reproduced windows: known differences, missing and broken files."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from replication.base.errors import InputError
from replication.base.files import digest_of, write_text
from replication.base.table import TRACE_COLUMNS
from replication.compare.trace_comparison import compare_traces, nearness
from replication.design.config import load_study
from replication.metrics.cwnd import FIGURES
from replication.metrics.trace_source import FOLDER, SOURCES, fetch_traces

from tests.unit.conftest import ROOT, SEGMENT_BYTES, tolerance

DURATION_S = 61
CELLS = {
    "cwnd_mean": ("cwnd_mean_segments", "segments", 33.0),
    "cwnd_peak": ("cwnd_peak_segments", "segments", 43.0),
    "window_reductions": ("window_reductions", "1", 6.0),
    "retransmissions": ("retransmissions", "packets", 9.0),
}
FLOWS = {"flow1": ["tcp1"], "flow2": ["tcp2"]}


def tooth(second: int) -> float:
    """Return a window of 20, 22 ... 38 segments, one tooth in ten seconds."""
    return 20.0 + 2 * (second % 10)


def trace_text(above=0):
    """Return a trace of two flows by `tooth`, the second `above` it; none has a slow start."""
    lines = []
    for second in range(DURATION_S):
        for flow in (0, 1):
            window = tooth(second) + above * flow
            lines.append(f"{1.6e9 + second},10.0.0.1:{500 + flow},0,1,{window:.0f},20\n")
    return "".join(lines)


def series(engine, replicate, **_):
    # Linux is one segment too high, ns-3 five, and replicates differ by a tenth.
    shift = (1.0 if engine == "linux" else 5.0) + 0.1 * replicate
    return [
        {
            "time_s": second + 1.0,
            "cwnd_bytes": (tooth(second) + shift) * SEGMENT_BYTES,
            "ssthresh_bytes": (20 + shift) * SEGMENT_BYTES,
            "rtt_s": 0.1 + shift / 100,
            "throughput_bps": 1e5,
        }
        for second in range(DURATION_S)
    ]


POINT = {"variant": "reno", "access": "slow"}
TRACE = "data/traces/synthetic/made-up.sender-ss.csv"


@pytest.fixture
def project(project):
    """A project with one study of one trace, runs of it, and the raw trace."""
    columns = {n: {"metric": m, "tolerance": tolerance(0.1)} for n, (m, _, _) in CELLS.items()}
    rows = {flow: {"where": {}, "flows": names} for flow, names in FLOWS.items()}
    shape = {"id": "trace:made-up", "where": POINT, "row_factor": None, "rows": rows}
    study = project.world.table(columns, **shape)
    numbers = []
    for flow in FLOWS:
        for column, (_, unit, value) in CELLS.items():
            printed = f"derived:{value:g}"
            numbers.append(("trace:made-up", flow, column, unit, value, printed))
    project.put(study, numbers)
    run = {"engines": ("linux", "ns3"), "runs": lambda levels: levels == POINT}
    project.world.results(study, **run, series=series, duration_s=float(DURATION_S))
    project.write(TRACE, trace_text())
    return project


def compare(project):
    compare_traces(project.root, project.data, ["synthetic"])
    return pd.read_csv(project.data / "trace_comparison.csv")


def row(table, metric, engine, flow="flow1"):
    keys = {"metric": metric, "engine": engine, "flow": flow}
    chosen = table[(table[list(keys)] == pd.Series(keys)).all(axis=1)]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_the_table_has_published_and_measured_figures_with_their_deviation(project):
    table = compare(project)
    assert list(table) == list(TRACE_COLUMNS)
    assert set(table["metric"]) == {*FIGURES, "cwnd_distance"}
    assert (table["evidence"] == "raw trace").all()
    assert len(table) == 2 * 2 * 8  # flows, engines, metrics
    mean = row(table, "cwnd_mean", "linux")
    published = (6 * 290 + 20) / 61
    assert mean["published"] == pytest.approx(published)
    assert mean["reproduced_mean"] == pytest.approx(published + 1.1)
    # Student's t with two degrees of freedom: 4.303 x 0.1 / sqrt(3).
    assert mean["reproduced_high"] - mean["reproduced_mean"] == pytest.approx(0.2484, abs=1e-4)
    assert (mean["n"], mean["congestion_control"]) == (3, "reno")
    assert mean["relative_deviation"] == pytest.approx(1.1 / published)
    shape = {"sawtooth_period": 10.0, "sawtooth_height": 18.0}
    for metric, value in (shape | {"reductions_per_minute": 6.0, "slow_start_share": 0.0}).items():
        for engine in ("linux", "ns3"):
            figure = row(table, metric, engine)
            assert figure["published"] == figure["reproduced_mean"] == pytest.approx(value)


def test_distance_is_the_shift_compared_with_that_between_the_papers_flows(project):
    # The second published flow is three segments above the first.
    project.write(TRACE, trace_text(above=3))
    table = compare(project)
    for engine, shift in (("linux", 1.1), ("ns3", 5.1)):
        distance = row(table, "cwnd_distance", engine)
        assert distance["published"] == pytest.approx(3)
        assert distance["reproduced_mean"] == pytest.approx(shift)
        assert distance["relative_deviation"] == pytest.approx(shift / 3 - 1)


def test_our_window_at_the_first_sample_is_taken_at_the_same_age_of_the_flow(project):
    def late(**run):
        samples = series(**run)
        for sample in samples[:10]:
            sample["cwnd_bytes"] = None
        return samples

    chosen = {"engines": ("linux",), "runs": lambda levels: levels == POINT}
    study = load_study(project.root, "synthetic")
    project.world.results(study, **chosen, series=late, duration_s=float(DURATION_S))
    head = "trace,flow,minrtt_s,mss_bytes,first_pacing_rate_bps,first_busy_s,first_cwnd_segments"
    row = "made-up,flow1,0.4,1448,1e6,3.0,10,0.5\n"
    project.write("data/published/synthetic/raw_samples.csv", f"{head},cookie_rtt_s\n{row}")
    compare(project)
    (sample,) = pd.read_csv(project.data / "trace_samples.csv").to_dict("records")
    # 2.5 s without the cookie: the third window of a flow whose first is half an interval old.
    assert sample["our_cwnd_segments"] == pytest.approx(tooth(12) + 1.1)


def test_without_raw_traces_only_summary_figures_are_compared(project):
    (project.root / TRACE).unlink()
    table = compare(project)
    assert (table["evidence"] == "summary figure").all()
    assert set(table["metric"]) == {"cwnd_mean", "cwnd_peak", "reductions_per_minute"}
    assert row(table, "cwnd_mean", "linux")["published"] == 33
    assert row(table, "reductions_per_minute", "ns3")["published"] == pytest.approx(6 * 60 / 61)
    windows = pd.read_parquet(project.data / "trace_windows.parquet")
    assert set(windows["source"]) == {"linux", "ns3"}


def test_a_shorter_trace_shortens_both_sides(project):
    project.write(TRACE, "\n".join(trace_text().splitlines()[: 2 * 26]))
    mean = row(compare(project), "cwnd_mean", "linux")
    published = (2 * 290 + sum(tooth(s) for s in range(6))) / 26
    assert mean["published"] == pytest.approx(published)
    assert mean["reproduced_mean"] == pytest.approx(published + 1.1)


def published(root, folder, content=b"1.0,a:1,,,10\n"):
    """Record a trace's place, and write it, or a different one, into a folder."""
    file = {"path": "data/reno/sender-ss.csv", "sha256": digest_of(b"1.0,a:1,,,10\n")}
    source = {"repository": "a/b", "commit": "c", "licence": "MIT", "files": {"reno": file}}
    write_text(root / SOURCES, json.dumps({"kapadia": source}))
    (folder / "kapadia").mkdir(parents=True)
    (folder / "kapadia" / "reno.sender-ss.csv").write_bytes(content)


def test_traces_from_a_folder_are_checked_by_their_hashes(tmp_path):
    published(tmp_path, tmp_path / "kept")
    fetch_traces(tmp_path, tmp_path / "kept")
    assert (tmp_path / FOLDER / "kapadia/reno.sender-ss.csv").read_bytes() == b"1.0,a:1,,,10\n"
    with pytest.raises(InputError, match=r"kapadia/reno.*data/reno/sender-ss"):
        fetch_traces(tmp_path, tmp_path)
    published(tmp_path, tmp_path / "other", b"1.0,a:1,,,11\n")
    (tmp_path / FOLDER / "kapadia/reno.sender-ss.csv").unlink()
    with pytest.raises(InputError, match=r"reno\.sender-ss\.csv: .*SHA-256"):
        fetch_traces(tmp_path, tmp_path / "other")


@pytest.mark.skipif(not (ROOT.parent / "shared/traces").is_dir(), reason="no traces next to it")
def test_the_published_traces_have_the_recorded_hashes(tmp_path):
    write_text(tmp_path / SOURCES, (ROOT / SOURCES).read_text())
    assert "8 traces" in fetch_traces(tmp_path, ROOT.parent / "shared/traces")


def test_nearness_counts_the_flows_that_every_engine_has():
    keys = {"study": "s", "metric": "m", "point": "p", "trace": "t", "published": 10.0}
    reproduced = {
        "a": {"f1": 9.0, "f2": 15.0, "f3": 9.0, "f4": 10.0},
        "b": {"f1": 12.0, "f2": 10.0, "f3": 11.0, "f4": float("nan")},
    }
    rows = []
    for engine, flows in reproduced.items():
        for flow, mean in flows.items():
            rows.append(keys | {"flow": flow, "engine": engine, "reproduced_mean": mean})
    counted = {row["engine"]: row for row in nearness(pd.DataFrame(rows))}
    assert counted.keys() == {"a", "b"}
    for row in counted.values():
        assert (row["nearest"], row["flows"], row["share"]) == (1.5, 3, 0.5)
    # A distance is already a gap.
    distances = pd.DataFrame(rows).assign(metric="cwnd_distance")
    assert [r["nearest"] for r in nearness(distances)] == [2, 1]
    alone = pd.DataFrame([r for r in rows if r["engine"] == "a"])
    assert list(nearness(alone)) == []
