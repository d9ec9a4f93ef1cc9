"""Windows on one grid and their sawtooth, on series whose figures are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replication.metrics.cwnd import Samples, SeriesError, Window, prominent_teeth

INTERVAL_S = 0.1
windows = st.lists(st.floats(1, 500), min_size=2, max_size=60)


def teeth(count: int, low: float, step: float, samples: int) -> np.ndarray:
    """`count` ramps from `low` by `step`, and the fall after the last."""
    ramp = low + step * np.arange(samples)
    return np.append(np.tile(ramp, count), low)


def steady(values, ssthresh=0.0) -> Window:
    """A window without start-up: it begins above its threshold."""
    cwnd = np.asarray(values, dtype=float)
    time = INTERVAL_S * np.arange(cwnd.size)
    return Window(time, cwnd, np.broadcast_to(np.asarray(ssthresh, dtype=float), cwnd.shape))


@given(
    count=st.integers(1, 8),
    low=st.floats(2, 50),
    step=st.floats(0.5, 5),
    samples=st.integers(12, 80),
)
def test_period_and_height_of_a_sawtooth(count, low, step, samples):
    height = step * (samples - 1)
    cwnd = teeth(count, low, step, samples)
    found = prominent_teeth(INTERVAL_S * np.arange(cwnd.size), cwnd)
    is_deep = height >= 0.2 * (low + height)
    assert found.teeth == (count if is_deep else 0)
    if is_deep:
        assert found.height_segments == pytest.approx(height)
        assert found.period_s == pytest.approx(INTERVAL_S * samples, nan_ok=True) or count == 1
        assert np.isnan(found.period_s) == (count == 1)


@pytest.mark.parametrize(
    ("cwnd", "expected"),
    [
        ([8, 10, 8], 1),  # exactly two segments and 20 %
        ([7, 8.9, 7], 0),  # two segments are asked for
        ([81, 100, 81], 0),  # and 20 %
        ([10, 20, 19, 20, 19, 20, 10], 1),  # ripples on a top are not teeth
        ([20, 10, 20], 0),  # a top at an edge is none: how far it rose or falls is unknown
    ],
)
def test_what_counts_as_a_tooth(cwnd, expected):
    assert prominent_teeth(np.arange(len(cwnd)), cwnd).teeth == expected
    # A flat top counts at its first sample.
    assert prominent_teeth(np.arange(10), [1, 9, 9, 9, 1, 1, 1, 9, 9, 1]).period_s == 6.0


def test_figures_but_the_peak_leave_start_up_out():
    window = steady([10, 20, 40, 80, 30, 31, 32, 33], [np.nan] * 4 + [30] * 4)
    assert window.start_up_end == 4
    assert (window.grid_mean(), window.peak(), window.minimum()) == (31.5, 80.0, 30.0)


@given(slow=st.integers(0, 30), rest=st.integers(1, 30))
def test_share_of_slow_start_by_the_threshold(slow, rest):
    # Above the threshold first, so that start-up is over before a timeout takes it back there.
    cwnd = [50.0] * rest + [2.0] * slow
    share = steady(cwnd, 25.0).slow_start_share()
    assert share == pytest.approx(slow / (slow + rest))


def test_an_unset_threshold_is_infinite_until_start_up_ends():
    cwnd = [10, 20, 40, 20, 21, 22, 23, 24]
    window = steady(cwnd, np.nan)
    assert window.start_up_end == 3
    assert window.slow_start_share() == window.start_up_share() == 3 / 8
    endless = steady([1, 2, 4, 8], np.nan)
    assert endless.slow_start_share() == endless.start_up_share() == 1.0


def test_samples_taken_at_any_pace_give_the_same_window_on_the_grid():
    # A window that changes once a second, read four times a second and now and then.
    def cwnd(time):
        return 20 + 2 * (np.floor(time + 1e-9) % 10)

    regular = np.arange(0, 30, 0.25)
    odd = np.unique(np.concatenate([np.arange(0, 30, 1.0), [0.3, 0.9, 4.55, 17.2]]))
    grids = [
        Samples.of(time + start, cwnd(time), np.zeros_like(time)).on_grid(1.0, 29.0)
        for time, start in ((regular, 0.0), (odd, 1.6e9))
    ]
    for window in grids:
        assert window.time_s.tolist() == list(range(30))
        assert window.cwnd_segments.tolist() == cwnd(np.arange(30.0)).tolist()


def test_samples_are_sorted_cut_and_counted_from_the_first():
    samples = Samples.of([7, 5, 6, 9, 8], [3, 1, 2, 5, np.nan], [np.nan] * 5, until_s=8)
    assert samples.time_s.tolist() == [0, 1, 2]
    assert samples.cwnd_segments.tolist() == [1, 2, 3]
    assert (samples.span_s, samples.interval_s, samples.has_threshold) == (2.0, 1.0, False)
    with pytest.raises(SeriesError, match="two samples"):
        Samples.of([1, 2], [3, np.nan], [1, 1])


@given(values=windows, shift=st.floats(-0.5, 100), seed=st.integers(0, 99))
def test_distance_is_the_shift_whatever_the_order_of_samples(values, shift, seed):
    shifted = np.random.default_rng(seed).permutation(np.array(values) + shift)
    assert steady(values).distance(steady(shifted)) == pytest.approx(abs(shift), abs=1e-6)
