"""Statistics against values from tables, and against properties that must hold for any data."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replication.metrics.statistic import (
    estimate,
    jain_index,
    ranked,
    relative_deviation,
    spearman,
    wilson_interval,
)
from replication.study.published import half_ulp, significant_digits

moderate = st.floats(-1e6, 1e6, allow_nan=False)
positive = st.floats(1e-3, 1e6)


@pytest.mark.parametrize(
    ("values", "tie", "expected"),
    [
        ([], 0.1, []),
        ([3.0, 1.0, 2.0], 0.0, [2, 0, 1]),
        ([2.0, 1.0, 2.0], 0.0, [1, 0, 1]),
        ([100.0, 104.0, 108.0, 120.0], 0.05, [0, 0, 0, 1]),  # a chain of ties is one rank
        ([-100.0, -104.0, -120.0], 0.05, [1, 1, 0]),
        ([0.0, 1e-9], 0.05, [0, 1]),  # only zero is tied with zero
    ],
)
def test_ties_share_a_rank(values, tie, expected):
    assert list(ranked(values, tie)) == expected


def test_intervals_of_equal_bounded_and_infinite_values():
    for values, bounds, expected in (
        ([0.1] * 7, (), (0.1, 0.1, 0.1)),
        ([0.0, 1.0, 1.0], (0, 1), (0, 2 / 3, 1)),
        ([2.0, math.inf, 3.0, math.nan], (), (2.0, math.inf, math.inf)),
    ):
        interval = estimate(values, *bounds)
        assert (interval.low, interval.mean, interval.high) == expected


@given(st.lists(moderate, min_size=3, max_size=10), moderate, st.floats(0.5, 100))
def test_interval_moves_and_scales_with_the_data(values, shift, scale):
    interval, moved = estimate(values), estimate([scale * v + shift for v in values])
    size = max(abs(v) for v in values) * scale + abs(shift) + 1
    for name in ("low", "mean", "high"):
        expected = scale * getattr(interval, name) + shift
        assert getattr(moved, name) == pytest.approx(expected, abs=1e-6 * size)


def test_interval_contains_the_true_mean_in_95_of_100_samples():
    generator = np.random.default_rng(1)
    samples = generator.normal(10, 3, size=(2000, 5))
    held = sum(e.low <= 10 <= e.high for e in map(estimate, samples))
    assert 0.935 < held / 2000 < 0.965


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 5, 0.5655, 1.0), (8, 10, 0.4902, 0.9433), (1, 2, 0.0945, 0.9055)],
)
def test_wilson_interval_matches_values_from_tables(successes, trials, low, high):
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(
    ("printed", "value", "expected"),
    [
        ("122.144", 0.122144, 0.5e-6),
        ("0.480", 480000, 500),
        ("about 10%", 0.1, 0.005),
        ("less than 8Mbps", 8e6, 5e5),
        ("derived:14.65", 14.65, 0.005),
        ("1,964.1", 1964.1, 0.05),
        ("5e-3", 0.005, 0.0005),
        ("three", 3, 0),
    ],
)
def test_the_rounding_error_is_half_of_the_last_printed_digit(printed, value, expected):
    assert half_ulp(printed, value) == pytest.approx(expected)


@given(st.integers(1, 10**6), st.integers(0, 6))
def test_rounding_a_number_moves_it_by_half_a_digit_at_most(number, places):
    value = number / 997
    printed = f"{value:.{places}f}"
    if float(printed):
        bound = half_ulp(printed, float(printed))
        assert abs(value - float(printed)) <= bound * (1 + 1e-9)


@pytest.mark.parametrize(
    ("printed", "digits"),
    [("0.997667", 6), ("0.0480", 3), ("1.500", 4), ("1500", 2), ("29", 2), ("none", 0)],
)
def test_significant_digits_of_printed_numbers(printed, digits):
    assert significant_digits(printed) == digits


def test_interval_is_students_and_needs_three_replicates():
    # t(0.975, 2) = 4.302653, standard deviation 1, n = 3
    interval = estimate([1.0, 2.0, 3.0])
    assert interval.mean == 2.0
    assert interval.high - 2.0 == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert 2.0 - interval.low == pytest.approx(interval.high - 2.0)
    for values in ([], [5.0], [5.0, 7.0]):
        few = estimate(values)
        assert few.n == len(values) and math.isnan(few.low)


@given(st.lists(positive, min_size=1, max_size=20), positive)
def test_jain_lies_between_one_over_n_and_one_and_ignores_the_unit(values, scale):
    index, n = jain_index(values), len(values)
    assert 1 / n - 1e-12 <= index <= 1 + 1e-12
    assert jain_index([scale * v for v in values]) == pytest.approx(index)
    assert jain_index([scale] * n) == pytest.approx(1)
    assert jain_index([scale] + [0.0] * (n - 1)) == pytest.approx(1 / n)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (jain_index([2.0, 1.0]), 0.9),
        (jain_index([3.0, math.nan]), 1),
        (jain_index([]), math.nan),
        (jain_index([0.0, 0.0]), math.nan),
        # Rank correlations see order only; constant data have no trend.
        (spearman([1, 2, 3, 4], [1, 10, 100, 1000]), 1),
        (spearman([1, 2, 3], [5, 5, 5]), 0),
        (relative_deviation(90, 100), -0.1),
        (relative_deviation(1, 0), math.nan),
    ],
)
def test_known_values_of_indices_correlations_and_deviations(value, expected):
    assert value == pytest.approx(expected, nan_ok=True)
