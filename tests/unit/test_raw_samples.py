"""Raw samples: the transcription, and that no default or cause contradicts it."""

import math

import numpy as np
import pandas as pd
import pytest
from replication.base.table import read_frame
from replication.compare.trace_comparison import TRANSCRIBED
from replication.design.config import load_study
from replication.explore.cause import load_explanations
from replication.study.variation import Variation, apply, assumptions
from scripts.transcribe_raw_samples import (
    CONTROL,
    empty_round_trips,
    first_burst_segments,
    small_queue_segments,
    transcribe,
)

from tests.unit.conftest import ROOT

RAW = ROOT.parent / "shared/traces/kapadia/raw"
ETHERNET = 1514 / 1448


@pytest.fixture(scope="module")
def table():
    return read_frame(ROOT / TRANSCRIBED.format("kapadia"))


@pytest.mark.skipif(not RAW.is_dir(), reason="no raw samples next to it")
def test_the_committed_table_matches_the_raw_samples(table):
    transcribed = transcribe(ROOT, "kapadia", RAW)
    pd.testing.assert_frame_equal(transcribed, table, check_dtype=False, rtol=1e-9)


def test_round_trips_of_the_handshake_are_solved_from_the_smoothed_round_trip():
    for syn, cookie in ((0.9, 0.6), (0.5, 0.7)):
        sample = {"bytes_acked": 38, "minrtt": min(syn, cookie), "rtt": syn + (cookie - syn) / 8}
        flow = pd.DataFrame([sample | {"mss": 1448, "delivery_rate": 1448 * 8e3 / cookie}])
        assert empty_round_trips(flow) == pytest.approx((syn, cookie))


def test_the_loss_probe_leaves_two_jiffies_after_two_round_trips(table):
    probes = table["first_probe_s"].dropna()
    # Flows 2 and 3 of the four recordings of three flows without BBR.
    assert len(probes) == 8
    trips_s, tick_s = 2 * table.loc[probes.index, "first_rtt_s"], 0.004
    # A timer of the kernel runs out a tick late.
    two_jiffies = (np.ceil(trips_s / tick_s) + 2 + 1) * tick_s
    two_ms = (np.ceil((trips_s + 0.002) / tick_s) + 1) * tick_s
    assert list(probes) == pytest.approx(list(two_jiffies))
    assert (two_ms < probes).all()


def test_a_burst_ends_where_acknowledgements_pause():
    acked, busy, since = [0, 6, 8, 8, 12], [8, 60, 140, 220, 376], [None, 12, 68, 148, 12]
    flow = pd.DataFrame({"busy": busy, "lastack": since, "mss": 1448})
    flow["bytes_acked"] = [38 + 1448 * count for count in acked]
    assert first_burst_segments(flow) == 8
    # The ninth segment's acknowledgement came 304 ms later, without a sample between.
    assert first_burst_segments(flow.drop(index=[3]).replace({38 + 1448 * 12: 38 + 1448 * 9})) == 8


def test_tcp_small_queues_predicts_every_first_burst(table):
    known = table[table["unanswered_pacing_rate_bps"].notna()]
    rates, bursts = known["unanswered_pacing_rate_bps"], list(known["first_burst_segments"])
    assert len(bursts) == 10
    predicted = {m: [small_queue_segments(r, m) for r in rates] for m in range(512, 8192, 8)}
    (default, *allowed) = values(load_study(ROOT, "kapadia"))["segment_memory_bytes"]
    matching = [memory for memory, segments in predicted.items() if segments == bursts]
    assert [matching[0], matching[-1]] == allowed
    # Nine segments wait in the send buffer's first 87040 bytes, and eleven are out.
    full = known[known["first_acked_segments"] == 0]
    waiting = full["first_notsent_bytes"] / full["mss_bytes"]
    assert set(full["first_unacked_segments"] + waiting) == {87040 / default}


def test_the_first_data_segments_take_longer_than_the_cookie_of_iperf3(table):
    # Another segment's delivery within two round trips of the cookie would have raised the rate.
    first = table[(table["first_acked_segments"] >= 2) & (table["minrtt_s"] < 0.01)]
    rate_bps = first["first_delivery_rate_bps"]
    least_s = 2 * first["mss_bytes"] * 8 / rate_bps
    assert len(least_s) == 8
    assert (least_s.min(), least_s.max()) == pytest.approx((0.96e-3, 1.22e-3), abs=5e-6)


def values(study):
    """Return each assumed parameter's default and the ends of its plausible range."""
    by_key = {}
    for assumption in assumptions(study):
        tag = assumption.tag
        plausible = [*(tag.range or tag.choices), *(tag.varies or [])]
        by_key[assumption.key] = [assumption.default, *plausible]
    return by_key


def contradictions(table, study):
    """Return the parameters with a plausible value that contradicts the raw samples."""
    data, given = table[table["flow"] != CONTROL], values(study)
    empty = data[data["minrtt_s"] < 0.01]
    least = empty.groupby("trace")["minrtt_s"].min()
    rates = data["payload_rate_bps"] / 1e6
    trips = table[["syn_rtt_s", "cookie_rtt_s"]].max(axis=1)
    spread = (trips[trips < 0.01] - table["trace"].map(least)).max()
    longest = data["largest_rtt_s"].max() - 0.044  # the latest acknowledgement, by a tick
    allowed = {
        "link_delay_s": (empty["minrtt_s"].min() / 4, empty["minrtt_s"].max() / 4),
        "packet_jitter_s": (0, spread / 2),
        "router_clock_ratio": (rates.min() * ETHERNET, rates.max() * ETHERNET),
        "frame_bytes": (1448 / rates.max() - 1500, 1448 / rates.min() - 1500),
        "overrun_s": (data["sending_s"].min() - 60, data["sending_s"].max() - 60),
        "segment_bytes": (data["mss_bytes"].min(), data["mss_bytes"].max()),
        "clock_granularity_s": (data["tick_s"].min(), data["tick_s"].max()),
        "timer_hz": (1 / data["tick_s"].max(), 1 / data["tick_s"].min()),
        "maximum_window_bytes": ((data["most_unacked_segments"] * 1448).max(), 6 << 19),
        "buffer_bytes": (1514 * math.ceil(longest / 0.012112), 104857),
        "minimum_rto_s": (0.2, data["least_rto_s"].min()),
        "initial_window_segments": (10, 10),
        # At least one segment is acknowledged together with another.
        "delayed_ack_segments": (1 / data["acknowledgements_per_segment"].max(), 2),
    }
    slack = {"overrun_s": 0.01, "link_delay_s": 1e-6, "packet_jitter_s": 1e-6, "frame_bytes": 0.4}
    contradicted = set()
    for key, (low, high) in allowed.items():
        off = slack.get(key, 1e-4 * high)
        if not all(low - off <= value <= high + off for value in given[key]):
            contradicted.add(key)
    return contradicted


def test_no_default_range_or_cause_contradicts_a_raw_sample(table):
    study = load_study(ROOT, "kapadia")
    assert contradictions(table, study) == set()
    assert values(study)["segmentation_offload"] == [False, False]
    # BBR counts the cookie's acknowledgement.
    untouched = (table["first_acked_segments"] == 0) & (table["trace"] != "bbr")
    assert set(table.loc[untouched, "first_cwnd_segments"]) == {10}
    # No merging: each of the first segments has an acknowledgement.
    data = table[table["flow"] != CONTROL]
    assert (data["first_acked_segments"] == data["first_acknowledgements"]).all()
    for cause in load_explanations(ROOT, "kapadia").causes:
        ends = [cause.range.low, cause.range.high] if cause.range else []
        for key in [*map(str, ends), *cause.variations]:
            changed = apply(study, cause.variation(key))
            assert contradictions(table, changed) == set(), (cause.id, key)


def test_refuted_causes_contradict_the_raw_samples(table):
    refuted = {"link_delay_s": 0.0025, "timer_hz": 1000, "frame_bytes": 0, "buffer_bytes": 100_000}
    refuted |= {"maximum_window_bytes": 43690, "initial_window_segments": 4}
    refuted |= {"delayed_ack_segments": 1}
    changed = apply(load_study(ROOT, "kapadia"), Variation(parameters=refuted))
    assert contradictions(table, changed) == set(refuted)
