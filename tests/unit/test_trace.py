"""Traces of `ss` and series of windows, on sawtooths with known figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replication.base.errors import InputError
from replication.design.config import load_study
from replication.metrics.cwnd import (
    FIGURES,
    CwndSeries,
    find_reductions,
    prominent_teeth,
    time_weighted_mean,
)
from replication.metrics.feature import FlowSeries, feature
from replication.metrics.trace import read_flows, read_trace
from replication.metrics.trace_source import FOLDER, TABLE_PREFIX, TRACE_SUFFIX
from replication.study.published import read_published

from tests.unit.conftest import ROOT

COMMITTED = ROOT / "data" / "published" / "kapadia.csv"
UNSET = float("nan")


def trace_folder() -> Path:
    folder = ROOT / FOLDER / "kapadia"
    return folder if folder.is_dir() else ROOT.parent / "shared" / "traces" / "kapadia"


def derived_rows(folder: Path, names: dict[str, list[str]]) -> dict[tuple[str, str, str], str]:
    """Derive the summary figures of the traces in a folder by the package's own definitions."""
    rows = {}
    for path in sorted(folder.glob(f"*{TRACE_SUFFIX}")):
        stem = path.name.removesuffix(TRACE_SUFFIX)
        for name, samples in read_flows(path, names[stem]).items():
            columns = ["time_s", "cwnd_segments", "ssthresh_segments"]
            arrays = [samples[column].to_numpy() for column in columns]
            rtt = samples.get("rtt_s", pd.Series(UNSET, samples.index)).to_numpy()
            flow = FlowSeries(*arrays, rtt)
            figures = {
                "cwnd_mean": f"{feature('cwnd_mean_segments', flow):.2f}",
                "cwnd_peak": f"{feature('cwnd_peak_segments', flow):.0f}",
                "cwnd_minimum": f"{feature('cwnd_minimum_segments', flow):.0f}",
                "window_reductions": f"{feature('window_reductions', flow):.0f}",
                # `ss` prints the count only once it is above zero.
                "retransmissions": f"{samples['retransmissions'].fillna(0).max():.0f}",
            }
            if "rtt_s" in samples:
                mean = time_weighted_mean(flow.time_s[flow.steady], flow.rtt_s[flow.steady])
                figures["rtt_mean"] = f"{mean:.4f}"
            rows |= {(f"trace:{stem}", name, column): text for column, text in figures.items()}
    return rows


# Without the traces, which are not committed, there is no such test: CI takes a skip for a failure.
if trace_folder().is_dir():

    def test_summary_figures_of_the_traces_match_the_committed_numbers():
        study = load_study(ROOT, "kapadia")
        names = {
            table.id.removeprefix(TABLE_PREFIX): list(table.rows or {}) for table in study.tables
        }
        committed = {}
        for number in read_published(COMMITTED):
            if number.table.startswith(TABLE_PREFIX):
                printed = number.printed.removeprefix("derived:")
                committed[number.table, number.row, number.column] = printed
        assert derived_rows(trace_folder(), names) == committed


@pytest.mark.parametrize(
    ("cwnd", "expected"),
    [
        ([10, 8], [1]),  # exactly 20 % and 2 segments
        # Proportional rate reduction: 5 % a sample, far below 20 % between neighbours.
        ([100 * 0.95**step for step in range(14)] + [49, 50, 51], [5]),
        ([100, 81], []),
        ([4, 3, 4, 3], []),  # Vegas: one segment at a time
        ([20, 10, 11.9, 5], [1]),
        ([20, 10, 12, 5], [1, 3]),
    ],
)
def test_a_reduction_takes_20_percent_and_two_segments(cwnd: list[float], expected: list[int]):
    assert find_reductions(cwnd) == expected


@pytest.mark.parametrize(
    ("cwnd", "ssthresh", "expected"),
    [
        ([10, 20, 30], [UNSET, 20, 20], 1),  # threshold reached
        ([10, 20, 30], [1e6, 1e6, 1e6], None),  # a simulator's "infinite" threshold
        ([10, 20, 5], [UNSET] * 3, 2),  # BBR: first reduction
        ([10, 20, 5, 6, 7], [64, 64, 7, 7, 7], 2),  # timeout in slow start
    ],
)
def test_start_up_ends_at_the_threshold_or_the_first_reduction(
    cwnd: list[float], ssthresh: list[float], expected: int | None
):
    series = CwndSeries(*map(np.array, (range(len(cwnd)), cwnd, ssthresh)))
    assert series.start_up_end == expected
    assert series.steady_cwnd.tolist() == cwnd[expected or 0 :]


def test_mean_is_weighted_by_time():
    assert time_weighted_mean([0, 9, 10], [1, 11, 500]) == pytest.approx(2.0)
    assert time_weighted_mean([0, 4, 9, 10], [1, UNSET, 11, 500]) == pytest.approx(2.0)
    assert time_weighted_mean([3], [7]) == 7.0
    with pytest.raises(InputError):
        time_weighted_mean([0, 1], [UNSET, UNSET])


#: BBR without threshold or retransmission; Reno with the script's misplaced token.
PAIR = """\
1600000000.0,10.10.1.100:902,480.0,100.0,,,10,
1600000000.0,10.10.1.100:901,478.5,250,,,12,
1600000001.0,10.10.1.100:902,480.0,200.0,1,rcv_space,20,20
1600000002.0,10.10.1.100:902,480.0,220.0,0,5,22,20
1600000002.0,10.10.1.100:901,478.5,250,,,12,
"""
#: Two flows and a control connection of one sample.
TRIO = "1600000000.0,10.10.1.100:500,,,10,\n"
for _second in range(30):
    TRIO += "".join(f"{16e8 + _second},10.10.1.100:{port},0,3,20,20\n" for port in (501, 502))


def test_pair_trace_is_read_in_si_units(tmp_path: Path):
    pair, trio = (tmp_path / f"{name}{TRACE_SUFFIX}" for name in ("reno-vs-bbr", "made-up"))
    pair.write_text(PAIR)
    trio.write_text(TRIO)
    # The control connection is left out.
    assert set(read_trace(trio)["port"]) == {500, 501, 502}
    assert list(read_flows(trio, ["one", "two"])) == ["one", "two"]
    with pytest.raises(InputError, match=r"2 data flows.* 3 "):
        read_flows(trio, ["one", "two", "three"])
    flow = read_flows(pair, ["reno", "bbr"])["bbr"]
    assert flow["delivery_rate_bps"].unique().tolist() == [480_000.0]
    assert flow["rtt_s"].iloc[0] == pytest.approx(0.1)
    # The misplaced token: another counter is not "retransmissions in flight".
    assert flow.loc[1, ["retransmissions", "retransmissions_in_flight"]].isna().all()
    assert flow.loc[2, "retransmissions"] == 5


GOOD = "1.0,a:1,,,10,\n"


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("1,2,3\n", "line 1: 3 columns"),
        (GOOD + "1.0,a:1,,,ten,\n", "line 2: cwnd_segments .*'ten'"),
        (GOOD + "1.0,a:1,,,0,\n", "line 2: cwnd_segments .*'0'"),
        ("\xff\xfe,", "utf-8"),
    ],
)
def test_bad_files_are_refused_by_file_and_line(content: str, where: str, tmp_path: Path):
    path = tmp_path / "bad.sender-ss.csv"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=where) as caught:
        read_trace(path)
    assert str(path) in str(caught.value)


# -- windows on one grid --------------------------------------------------------------------------

INTERVAL_S = 0.1
windows = st.lists(st.floats(1, 500), min_size=2, max_size=60)


def teeth(count: int, low: float, step: float, samples: int) -> np.ndarray:
    """`count` ramps from `low` by `step`, and the fall after the last."""
    ramp = low + step * np.arange(samples)
    return np.append(np.tile(ramp, count), low)


def steady(values, ssthresh=0.0) -> CwndSeries:
    """A window without start-up: it begins above its threshold."""
    cwnd = np.asarray(values, dtype=float)
    time = INTERVAL_S * np.arange(cwnd.size)
    return CwndSeries(time, cwnd, np.broadcast_to(np.asarray(ssthresh, dtype=float), cwnd.shape))


@given(st.integers(1, 8), st.floats(2, 50), st.floats(0.5, 5), st.integers(12, 80))
def test_period_and_height_of_a_sawtooth_are_recovered(count, low, step, samples):
    height = step * (samples - 1)
    cwnd = teeth(count, low, step, samples)
    sawtooth = prominent_teeth(INTERVAL_S * np.arange(cwnd.size), cwnd)
    is_deep = height >= 0.2 * (low + height)
    assert sawtooth.teeth == (count if is_deep else 0)
    if is_deep:
        assert sawtooth.height_segments == pytest.approx(height)
        assert sawtooth.period_s == pytest.approx(INTERVAL_S * samples, nan_ok=True) or count == 1
        assert np.isnan(sawtooth.period_s) == (count == 1)


@pytest.mark.parametrize(
    ("cwnd", "expected"),
    [
        ([8, 10, 8], 1),  # exactly two segments and 20 %
        ([7, 8.9, 7], 0),  # two segments are required
        ([81, 100, 81], 0),  # and 20 %
        ([10, 20, 19, 20, 19, 20, 10], 1),  # ripples on a top are not teeth
        ([20, 10, 20], 0),  # a top at an edge is none: how far it rose or falls is unknown
    ],
)
def test_a_tooth_needs_a_fall_on_both_sides(cwnd, expected):
    assert prominent_teeth(np.arange(len(cwnd)), cwnd).teeth == expected
    # A flat top counts at its first sample.
    assert prominent_teeth(np.arange(10), [1, 9, 9, 9, 1, 1, 1, 9, 9, 1]).period_s == 6.0


def test_only_the_peak_includes_start_up():
    window = steady([10, 20, 40, 80, 30, 31, 32, 33], [np.nan] * 4 + [30] * 4)
    assert window.start_up_end == 4
    figures = [FIGURES[name].of(window) for name in ("cwnd_mean", "cwnd_peak", "cwnd_minimum")]
    assert figures == [31.5, 80.0, 30.0]


@given(slow=st.integers(0, 30), rest=st.integers(1, 30))
def test_the_share_of_slow_start_is_the_time_below_the_threshold(slow, rest):
    # Above the threshold first, so that start-up is over before a timeout takes it back there.
    cwnd = [50.0] * rest + [2.0] * slow
    share = steady(cwnd, 25.0).slow_start_share()
    assert share == pytest.approx(slow / (slow + rest))


def test_an_unset_threshold_is_infinite_until_start_up_ends():
    cwnd = [10, 20, 40, 20, 21, 22, 23, 24]
    window = steady(cwnd, np.nan)
    assert window.start_up_end == 3
    assert window.slow_start_share() == window.slow_start_share(by_threshold=False) == 3 / 8
    endless = steady([1, 2, 4, 8], np.nan)
    assert endless.slow_start_share() == endless.slow_start_share(by_threshold=False) == 1.0


def test_the_resampled_window_does_not_depend_on_the_sampling_times():
    # A window that changes once a second, read four times a second and now and then.
    def cwnd(time):
        return 20 + 2 * (np.floor(time + 1e-9) % 10)

    regular = np.arange(0, 30, 0.25)
    odd = np.unique(np.concatenate([np.arange(0, 30, 1.0), [0.3, 0.9, 4.55, 17.2]]))
    for time, start in ((regular, 0.0), (odd, 1.6e9)):
        samples = CwndSeries.of(time + start, cwnd(time), np.zeros_like(time))
        window = samples.on_grid(1.0, 29.0)
        assert window.time_s.tolist() == list(range(30))
        assert window.cwnd_segments.tolist() == cwnd(np.arange(30.0)).tolist()


def test_samples_are_sorted_cut_and_counted_from_the_first():
    samples = CwndSeries.of([7, 5, 6, 9, 8], [3, 1, 2, 5, np.nan], [np.nan] * 5, until_s=8)
    assert samples.time_s.tolist() == [0, 1, 2]
    assert samples.cwnd_segments.tolist() == [1, 2, 3]
    assert (list(samples.time_s), samples.has_threshold) == ([0.0, 1.0, 2.0], False)
    with pytest.raises(InputError, match="two samples"):
        CwndSeries.of([1, 2], [3, np.nan], [1, 1])


@given(values=windows, shift=st.floats(-0.5, 100), seed=st.integers(0, 99))
def test_distance_between_windows_is_their_shift_in_any_order_of_samples(values, shift, seed):
    shifted = np.random.default_rng(seed).permutation(np.array(values) + shift)
    assert steady(values).distance(steady(shifted)) == pytest.approx(abs(shift), abs=1e-6)
