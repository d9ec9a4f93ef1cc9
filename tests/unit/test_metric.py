"""Metrics on small results whose every number was written by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replication.base.errors import InputError
from replication.design.study_check import check_quantities
from replication.metrics.feature import WINDOW_FEATURES, FlowSeries, feature
from replication.metrics.metric import quantity
from replication.metrics.metric_model import METRICS, MetricError
from replication.study.claim_model import Quantity

from tests.unit.conftest import claim, sampled, study_document

RENO = {"variant": "reno", "access": "slow"}


def only(results, metric, **changes):
    """The quantity at the one point RENO, which must be the same in every replicate."""
    wanted = Quantity(experiment="sweep", metric=metric, **{"where": RENO, **changes})
    values = quantity(results, wanted)["value"].unique()
    assert len(values) == 1, values
    return values[0]


@pytest.fixture
def uneven(world):
    """tcp1 has 300 kbit/s and 100 packets of 0.1 s, tcp2 100 kbit/s and 300 packets of 0.2 s."""
    counts = ("packets_sent", "packets_received", "packets_dropped")
    flows = {"tcp1": (3e5, 0.1, (110, 100, 10)), "tcp2": (1e5, 0.2, (300, 300, 0))}

    def row(flow, **_):
        rate, delay, packets = flows[flow]
        row = {"throughput_bps": rate, "delay_mean_s": delay}
        return row | dict(zip(counts, packets, strict=True))

    return world.results(world.study(), flows=row)


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [("sum", 4e5), ("mean", 2e5), ("maximum", 3e5), ("minimum", 1e5), ("jain", 0.8)],
)
def test_aggregates_over_flows(uneven, aggregate, expected):
    assert only(uneven, "throughput_bps", aggregate=aggregate) == pytest.approx(expected)


def test_throughput_before_losses_counts_what_links_lose(uneven, world):
    before = {"metric": "throughput_before_loss_bps", "aggregate": "sum"}
    assert only(uneven, **before) == pytest.approx(3e5 * 110 / 100 + 1e5)
    nothing = world.results(world.study(), flows=lambda **_: {"packets_received": 0})
    assert math.isnan(quantity(nothing, Quantity(experiment="sweep", **before))["value"].iloc[0])


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("delivery_ratio", 400 / 410),
        ("loss_rate", 10 / 410),
        ("delay_mean_s", (100 * 0.1 + 300 * 0.2) / 400),
    ],
)
def test_pooled_counts_every_packet_once(uneven, metric, expected):
    assert only(uneven, metric, aggregate="pooled") == pytest.approx(expected)
    assert only(uneven, "throughput_bps", flows=["tcp2"]) == 1e5


def test_pooled_delay_ignores_a_flow_that_received_nothing(world):
    starved = {"packets_received": 0, "delay_mean_s": np.nan}
    rows = {"tcp1": {"delay_mean_s": 0.3}, "tcp2": starved}
    results = world.results(world.study(), flows=lambda flow, **_: rows[flow])
    assert only(results, "delay_mean_s", aggregate="pooled") == pytest.approx(0.3)


def transfers(world, **expect):
    """Return the synthetic study with flow tcp1 as a transfer, and its completion time claimed."""
    study = study_document(claims=[])
    flows = [flow | {"stop_after_bytes": 9600} for flow in study["experiments"][0]["flows"][:1]]
    study["experiments"][0]["flows"] = flows + study["experiments"][0]["flows"][1:]
    asked = {"experiment": "sweep", "metric": "completion_time_s", "where": RENO}
    study["claims"] = [claim({"kind": "value", "of": asked, "expect": {"at_most": 3}})]
    return world.study(**study)


@pytest.mark.parametrize(
    ("times", "verdict", "is_incomplete"),
    [
        ([2.4, 2.5, 2.6], "reproduced", False),
        ([2.0, 2.5, math.nan], "direction only", True),
        ([math.nan] * 3, "not testable", True),
    ],
)
def test_an_incomplete_transfer_has_no_completion_time(world, times, verdict, is_incomplete):
    def row(flow, replicate, **_):
        return {"completion_time_s": times[replicate] if flow == "tcp1" else math.nan}

    judged = world.judge(transfers(world), flows=row)
    assert judged.verdict == verdict, judged.reason
    assert ("transfer" in judged.reason) == is_incomplete, judged.reason


# -- windows -----------------------------------------------------------------------------------


@pytest.fixture
def ramp(world):
    """Throughput 1, 2, ... 10 kbit/s in samples at 1, 2, ... 10 s; delay is the same in ms."""

    def series(flow, **_):
        if ":" in flow:
            return [{"time_s": t, "queue_packets": t, "drops": 1} for t in range(1, 11)]
        steps = [float(t) for t in range(1, 11)]
        return sampled(
            [10.0] * 10,
            ssthresh=5.0,
            throughput_bps=[1e3 * t for t in steps],
            delay_s=[1e-3 * t for t in steps],
            drops=2,
            retransmissions=1,
        )

    return world.results(world.study(), series=series)


@pytest.mark.parametrize(
    ("metric", "expected", "changes"),
    [
        # A window excludes its start and includes its end: samples at 3, 4 and 5 s are 2 to 5 s.
        ("throughput_bps", 4e3, {"window_s": (2, 5)}),
        ("throughput_bps", math.nan, {"window_s": (5, 11)}),
        # Weighted by bytes.
        ("delay_s", (3 * 3 + 4 * 4 + 5 * 5) / (3 + 4 + 5) * 1e-3, {"window_s": (2, 5)}),
        # Counts are summed; without a window they are the totals of the flows.
        ("drops", 6, {"window_s": (2, 5)}),
        ("retransmissions", 6, {"window_s": (2, 5), "aggregate": "sum"}),
        ("retransmissions", 16, {"aggregate": "sum"}),
        # In segments of the scenario.
        ("cwnd_peak_segments", 10, {}),
        ("queue_mean_packets", 5.5, {}),
        ("queue_drops", 4, {"window_s": (0, 4)}),
    ],
)
def test_metrics_of_series_in_a_window(ramp, metric, expected, changes):
    assert only(ramp, metric, **changes) == pytest.approx(expected, nan_ok=True)


def test_a_metric_of_queues_covers_all_monitored_links(world):
    (experiment,) = study_document()["experiments"]
    ways = [{"link": "bottleneck"}, {"link": "bottleneck", "direction": "ba"}, {"link": "in1"}]
    experiment["topology"]["monitors"] = ways
    waiting = {"bottleneck:ab": 5, "bottleneck:ba": 1, "in1:ab": 0}

    def series(flow, **_):
        queue = waiting.get(flow)
        return [{"time_s": t, "queue_packets": queue, "drops": 1} for t in range(1, 11)]

    study = world.study(experiments=[experiment])
    results = world.results(study, series=series, engines=("ns2",))
    assert only(results, "queue_mean_packets") == 2
    assert only(results, "queue_mean_packets", aggregate="sum") == 6
    assert only(results, "queue_drops", window_s=(0, 4)) == 4


@pytest.fixture
def shared(world):
    """Return a function that gives results in which two flows share the link so."""

    def make(**shares):
        def series(flow, **_):
            return sampled([5.0] * 4, throughput_bps=shares[flow]) if flow in shares else []

        return world.results(world.study(), series=series)

    return make


def test_jain_index_per_interval_and_since_the_start(shared):
    # fair at first, then one takes all
    results = shared(tcp1=[4.0, 4.0, 1.0, 1.0], tcp2=[4.0, 4.0, 0.0, 0.0])
    assert only(results, "jain_mean") == pytest.approx(0.75)
    # over the whole window: 10 to 8
    overall = only(results, "throughput_bps", aggregate="jain", window_s=(0, 4))
    assert overall == pytest.approx(81 / (2 * 41))
    # bytes since the start: 4 and 0, 4 and 4, 8 and 4, 8 and 8
    results = shared(tcp1=[4.0, 0.0, 4.0, 0.0], tcp2=[0.0, 4.0, 0.0, 4.0])
    uneven = 144 / (2 * 80)
    assert only(results, "jain_mean") == pytest.approx(0.5)
    mean = only(results, "jain_since_start_mean")
    assert mean == pytest.approx((0.5 + 1 + uneven + 1) / 4)
    # a window cuts the times at which the index is read, not the bytes that it is of
    assert only(results, "jain_since_start_mean", window_s=(2, 3)) == pytest.approx(uneven)
    assert only(results, "jain_since_start_variation", window_s=(2, 3)) == 0


# -- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_every_metric_can_be_computed(ramp, metric):
    frame = quantity(ramp, Quantity(experiment="sweep", metric=metric))
    assert len(frame) == 27
    assert METRICS[metric].unit and METRICS[metric].description


@pytest.mark.parametrize(
    ("metric", "changes", "message"),
    [
        ("throughput_bps", {"aggregate": "pooled"}, "cannot be pooled"),
        ("loss_rate", {"window_s": (0, 5)}, "has no window_s"),
        ("delay_mean_s", {"aggregate": "pooled", "window_s": (0, 5)}, "over a window"),
        ("queue_mean_packets", {"aggregate": "jain"}, "no Jain's index"),
    ],
)
def test_a_meaningless_quantity_is_refused(world, ramp, metric, changes, message):
    with pytest.raises(MetricError, match=message):
        only(ramp, metric, **changes)
    of = {"experiment": "sweep", "metric": metric, **changes}
    study = world.claim({"kind": "value", "of": of, "expect": {"at_least": 1}})
    with pytest.raises(InputError, match=f"claim c1: .*{message}"):
        check_quantities(study)


# -- features ----------------------------------------------------------------------------------


def flow_series(windows, ssthresh=np.nan, rtt=1.0, step=1.0, windowed=False):
    cwnd = np.asarray(windows, dtype=float)
    return FlowSeries(
        time_s=step * np.arange(1, cwnd.size + 1),
        cwnd_segments=cwnd,
        ssthresh_segments=np.broadcast_to(np.asarray(ssthresh, dtype=float), cwnd.shape),
        rtt_s=np.broadcast_to(np.asarray(rtt, dtype=float), cwnd.shape),
        windowed=windowed,
    )


SAWTOOTH = [2, 4, 8, *range(16, 25), *range(12, 25), *range(12, 25), 12]


@given(st.floats(1.2, 3.0), st.integers(6, 9), st.floats(0.02, 1.0), st.floats(0.3, 3.0))
def test_growth_per_round_trip_does_not_depend_on_sampling(factor, n, rtt, samples_per_rtt):
    step = rtt / samples_per_rtt
    windows = 10 * factor ** (np.arange(n) * step / rtt)
    growth = feature("slow_start_growth", flow_series(windows, rtt=rtt, step=step))
    assert growth == pytest.approx(factor, rel=1e-6)


def test_a_doubling_window_has_growth_2_while_its_queue_grows():
    # behind a full bottleneck of one segment a ms an acknowledgement comes each ms and adds one
    # segment, so the window is 10 + t, and the first acknowledgement's packet was sent when it
    # was half: the round trip is the time since then
    time = np.arange(0, 200)
    series = FlowSeries(
        time_s=1e-3 * time,
        cwnd_segments=10.0 + time,
        ssthresh_segments=np.full(200, np.nan),
        rtt_s=1e-3 * (5 + time / 2),
    )
    assert feature("slow_start_growth", series) == pytest.approx(2, rel=0.01)


def test_growth_is_measured_in_the_first_slow_start_only():
    # doubling to 32, then congestion avoidance for much longer
    windows = [2, 4, 8, 16, 32, *range(33, 60)]
    assert feature("slow_start_growth", flow_series(windows, ssthresh=32)) == pytest.approx(2)


def test_growth_needs_three_samples_a_round_trip_after_the_first():
    assert math.isnan(feature("slow_start_growth", flow_series([2, 4, 8], ssthresh=8)))
    assert feature("slow_start_growth", flow_series([2, 4, 8, 16], ssthresh=16)) == 2
    unknown = flow_series([2, 4, 8, 16], ssthresh=16, rtt=np.nan)
    assert math.isnan(feature("slow_start_growth", unknown))


def test_a_sawtooth_is_counted_and_measured():
    series = flow_series(SAWTOOTH, ssthresh=16)
    names = (f"cwnd_{name}_segments" for name in ("mean", "peak", "minimum"))
    assert [feature(name, series) for name in names] == [pytest.approx(648 / 35), 24, 12]
    assert feature("sawtooth_count", series) == feature("window_reductions", series) == 3
    assert feature("window_growth_rate", series) == pytest.approx(1.0)
    assert feature("slow_start_reentries", series) == 0
    assert feature("start_up_duration_s", series) == 3
    assert math.isnan(feature("start_up_duration_s", flow_series([2, 4, 8], ssthresh=99)))
    # A given window has no start-up.
    assert feature("sawtooth_count", flow_series(SAWTOOTH[9:], ssthresh=1, windowed=True)) == 3


def rises(shape):
    """Three teeth whose rises from 70 to 100 segments have a shape over 0 to 1."""
    rise = 70 + 30 * shape(np.linspace(0, 1, 41))
    return feature("rise_curvature", flow_series([100, *rise, *rise, *rise, 70], ssthresh=1))


def test_curvature_is_high_for_a_cubic_rise_and_zero_for_a_straight_one():
    assert rises(lambda t: t) == 0
    assert rises(lambda t: 4 * (t - 0.5) ** 3 + 0.5) == pytest.approx(1)  # around the inflection
    assert rises(lambda t: 1 - (1 - t) ** 3) == pytest.approx(1)
    # a line with a ripple far quicker than a cubic can follow
    assert rises(lambda t: t + 0.05 * np.sin(40 * np.pi * t)) < 0.2
    few = [70, 74, 80, 85, 90, 95, 100]
    assert math.isnan(feature("rise_curvature", flow_series([100, *few, *few, 70], ssthresh=1)))


@pytest.mark.parametrize(
    ("windows", "ssthresh", "expected"),
    [
        ([2, 4, 8, 16, 1, 2, 4, 8, 9, 1, 4], [99, 99, 99, 16, 8, 8, 8, 8, 8, 5, 5], 2),  # timeouts
        ([2, 4, 8, 16, 8, 9, 10, 5, 6], [99, 99, 99, 16, 8, 8, 8, 5, 5], 0),  # fast recovery
        ([8, 8, 3, 2, 2, 3, 2], [8, 8, 2, 2, 2, 2, 2], 0),  # a small window above its threshold
        ([1, 2, 4, 8], 99, 0),  # the first slow start is not a re-entry
    ],
)
def test_only_restarts_from_slow_start_are_reentries(windows, ssthresh, expected):
    assert feature("slow_start_reentries", flow_series(windows, ssthresh)) == expected


def test_window_spread_of_a_sawtooth_is_a_sixth_and_ignores_short_dips():
    tooth = np.linspace(50, 100, 501)
    assert feature("cwnd_spread", flow_series(np.tile(tooth, 5), ssthresh=1)) == pytest.approx(
        1 / 6, rel=0.01
    )
    # 0.2 s in 10 at four segments
    probing = np.tile([40.0] * 98 + [4.0] * 2, 5)
    assert feature("cwnd_spread", flow_series(probing, ssthresh=1)) == 0


@given(st.lists(st.floats(1, 1e3), min_size=1, max_size=30))
def test_every_feature_is_defined_or_nan_for_any_window(windows):
    for name in WINDOW_FEATURES:
        value = feature(name, flow_series(windows, ssthresh=10))
        assert math.isnan(value) or value >= 0
