"""The delay over a link on small series whose every number was written by hand."""

import math

import pytest
from replication.measure.link_delay import crossings, mean_packet_bytes
from replication.measure.metric import quantity
from replication.measure.metric_model import MetricError
from replication.study.claim_model import Quantity
from replication.study.scenario import Scenario
from replication.study.template import instantiate

from tests.unit.conftest import study_document, tcp

RENO = {"variant": "reno", "access": "slow"}
MONITORS = [
    {"link": "bottleneck"},
    {"link": "bottleneck", "direction": "ba"},
    {"link": "in1"},
    {"link": "out2", "direction": "ba"},
]
#: The bottleneck has 1 Mbit/s and 50 ms; a packet of 1000 bytes takes 8 ms.
PACKETS_PER_S = 125
CBR = {
    "id": "cbr",
    "kind": "cbr",
    "source": "s1",
    "destination": "d2",
    "start_s": 0.0,
    "stop_s": "$duration_s",
    "rate_bps": 1e5,
    "packet_bytes": 500,
}


def experiment_of(flows, link=None, monitors=MONITORS):
    """The synthetic experiment with more monitors, other flows and changes to its bottleneck."""
    (experiment,) = study_document()["experiments"]
    experiment["topology"]["monitors"] = monitors
    for one in experiment["topology"]["links"]:
        one.update(link or {} if one["id"] == "bottleneck" else {})
    return {**experiment, "flows": flows}


def study_of(world, flows=(), **changes):
    return world.study(experiments=[experiment_of(list(flows) or [tcp(1), tcp(2)], **changes)])


def only(results, metric="link_delay_mean_s", engine="ns2", **changes):
    wanted = Quantity(experiment="sweep", metric=metric, **{"where": RENO, **changes})
    frame = quantity(results, wanted)
    values = frame.loc[frame["engine"] == engine, "value"].unique()
    assert len(values) == 1, values
    return values[0]


def series(links, flows=None):
    """Samples at 1, 2, ... 10 s: links to (queue, packets of 1000 bytes a s), flows to the same."""

    def samples(flow, **_):
        queue, packets = links.get(flow, (math.nan, (flows or {}).get(flow, 50.0)))
        steps = range(1, 11)
        return [
            {
                "time_s": float(t),
                "queue_packets": queue(t) if callable(queue) else queue,
                "throughput_bps": 8e3 * (packets(t) if callable(packets) else packets),
                "drops": 1,
            }
            for t in steps
        ]

    return samples


@pytest.fixture
def busy(world):
    """Five wait at the bottleneck, one on its way back, none elsewhere."""
    links = {
        "bottleneck:ab": (5, PACKETS_PER_S),
        # Acknowledgements of 40 bytes, as many.
        "bottleneck:ba": (1, PACKETS_PER_S * 0.04),
        "in1:ab": (0, 60),
        "out2:ba": (0, 0),
    }
    return world.results(study_of(world), series=series(links), engines=("ns3", "ns2"))


@pytest.mark.parametrize(
    ("engine", "link", "expected"),
    [
        # 50 ms, 8 ms, and 5 packets that leave at 125 a second.
        ("ns2", "bottleneck:ab", 0.050 + 0.008 + 5 / 125),
        # PPP adds 2 bytes to each packet.
        ("ns3", "bottleneck:ab", 0.050 + 0.008016 + 5 / 125),
        ("ns2", "bottleneck:ba", 0.050 + 0.00032 + 1 / 125),
        ("ns3", "bottleneck:ba", 0.050 + 0.000336 + 1 / 125),
        # 10 Mbit/s and 10 ms
        ("ns2", "in1:ab", 0.010 + 0.0008),
    ],
)
def test_a_delay_is_propagation_transmission_and_little_s_wait(busy, engine, link, expected):
    assert only(busy, engine=engine, links=[link]) == pytest.approx(expected, rel=1e-12)


def test_what_nothing_crosses_has_no_delay(busy):
    assert math.isnan(only(busy, links=["out2:ba"]))


def test_links_are_combined_by_the_aggregate_without_those_that_nothing_crosses(busy):
    delays = [0.098, 0.05832, 0.0108]
    assert only(busy) == pytest.approx(sum(delays) / 3)
    assert only(busy, aggregate="sum") == pytest.approx(sum(delays))
    assert only(busy, aggregate="maximum") == pytest.approx(0.098)
    assert only(busy, aggregate="minimum", links=["bottleneck:ab", "bottleneck:ba"]) == (
        pytest.approx(0.05832)
    )


def test_metrics_of_queues_can_be_had_of_one_link(busy):
    assert only(busy, "queue_mean_packets", links=["bottleneck:ab"]) == 5
    assert only(busy, "queue_peak_packets", links=["bottleneck:ba"]) == 1
    assert only(busy, "queue_mean_packets", links=["bottleneck:ab", "bottleneck:ba"]) == 3
    assert only(busy, "queue_mean_packets") == 1.5
    assert only(busy, "queue_drops", links=["in1:ab"], window_s=(0, 4)) == 4


def test_a_link_that_no_run_monitors_is_an_error_that_lists_the_known_ones(busy):
    message = (
        r"no monitored link 'in2:ab' in synthetic; "
        r"monitored: bottleneck:ab, bottleneck:ba, in1:ab, out2:ba"
    )
    for metric in ("link_delay_mean_s", "queue_drops"):
        with pytest.raises(MetricError, match=message):
            only(busy, metric, links=["bottleneck:ab", "in2:ab"])


@pytest.mark.parametrize("metric", ["throughput_bps", "drops", "cwnd_mean_segments", "jain_mean"])
def test_links_of_what_is_not_taken_over_links_are_an_error(busy, metric):
    with pytest.raises(MetricError, match=r"links: bottleneck:ab, but metric .* leave links out"):
        only(busy, metric, links=["bottleneck:ab"])


def test_a_window_has_its_own_queue_and_departures(world):
    links = {"bottleneck:ab": (lambda t: t, lambda t: 10 * t)}
    results = world.results(study_of(world), series=series(links), engines=("ns2",))
    first = only(results, links=["bottleneck:ab"], window_s=(0, 5))
    assert first == pytest.approx(0.058 + (1 + 2 + 3 + 4 + 5) / (10 + 20 + 30 + 40 + 50))
    links = {"bottleneck:ab": (lambda t: 4 if t > 5 else 0, lambda t: 100 if t > 5 else 50)}
    results = world.results(study_of(world), series=series(links), engines=("ns2",))
    assert only(results, links=["bottleneck:ab"], window_s=(0, 5)) == pytest.approx(0.058)
    assert only(results, links=["bottleneck:ab"], window_s=(5, 10)) == pytest.approx(0.098)
    # Silence counts neither in the number nor in the rate: 20 / 750, not 2 / 50.
    assert only(results, links=["bottleneck:ab"]) == pytest.approx(0.058 + 20 / 750)


def test_sizes_are_weighted_by_packets(world):
    # 62.5 packets a second of 1000 bytes, and as many of 500: 750 on average, 6 ms.
    study = study_of(world, [tcp(1), CBR])
    links = {"bottleneck:ab": (5, 93.75)}
    found = series(links, {"tcp1": 62.5, "cbr": 31.25})
    results = world.results(study, series=found, engines=("ns2",))
    assert only(results, links=["bottleneck:ab"]) == pytest.approx(0.050 + 0.006 + 5 / 125)


def test_what_does_not_cross_a_link_has_no_part_in_its_sizes(world):
    # The other flow has packets of another size, but another way in.
    study = study_of(world, [tcp(1), {**CBR, "source": "s2"}])
    links = {"in1:ab": (1, 50)}
    results = world.results(study, series=series(links), engines=("ns2",))
    assert only(results, links=["in1:ab"]) == pytest.approx(0.010 + 0.0008 + 1 / 50)


def test_jitter_adds_half_and_a_shaper_lets_pass_at_the_rate_of_its_line(world):
    shaper = {"kind": "token_bucket", "burst_bytes": 2000, "line_rate_bps": 1e7}
    changes = {"jitter_s": 0.01, "frame_bytes": 14, "shaper_ab": shaper}
    links = {"bottleneck:ab": (5, PACKETS_PER_S), "bottleneck:ba": (0, PACKETS_PER_S)}
    results = world.results(
        study_of(world, link=changes), series=series(links), engines=("ns2", "ns3")
    )
    for engine in ("ns2", "ns3"):  # PPP is among the 14
        found = only(results, engine=engine, links=["bottleneck:ab"])
        assert found == pytest.approx(0.050 + 0.005 + 8 * 1014 / 1e7 + 5 / 125)
        found = only(results, engine=engine, links=["bottleneck:ba"])
        assert found == pytest.approx(0.050 + 0.005 + 8 * 54 / 1e6)


def scenario_of(flows):
    from replication.study.study import Study

    study = Study.model_validate(study_document(experiments=[experiment_of(flows)]))
    values = {"access_bps": 1e7, "access_s": 0.01, "bottleneck_bps": 1e6, "bottleneck_s": 0.05}
    values |= {"duration_s": 10.0, "segment_bytes": 960, "congestion_control": "reno"}
    return instantiate(study.experiments[0], values, seed=1)


def test_data_cross_one_way_and_acknowledgements_the_other():
    scenario = scenario_of([tcp(1), CBR])
    found = {
        name: [(flow.id, acknowledges) for flow, acknowledges in crossed]
        for name, crossed in crossings(scenario).items()
    }
    assert found == {
        "in1:ab": [("tcp1", False), ("cbr", False)],
        "bottleneck:ab": [("tcp1", False), ("cbr", False)],
        "out1:ab": [("tcp1", False)],
        "out2:ab": [("cbr", False)],
        "out1:ba": [("tcp1", True)],
        "bottleneck:ba": [("tcp1", True)],
        "in1:ba": [("tcp1", True)],
    }


@pytest.mark.parametrize(
    ("delayed", "timestamps", "size"),
    [
        # 60 packets of 1000 bytes make 60 acknowledgements, beside 30 packets of 500.
        (1, False, (60 * 40 + 30 * 500) / 90),
        (2, False, (30 * 40 + 30 * 500) / 60),
        # Timestamps take 12 bytes of both: 60 packets have 1012.
        (2, True, (30 * 52 + 30 * 500) / 60),
    ],
)
def test_acknowledgements_count_by_what_they_answer(delayed, timestamps, size):
    options = {"delayed_ack_segments": delayed, "timestamps": timestamps}
    back = {**CBR, "source": "d1", "destination": "s1"}
    scenario: Scenario = scenario_of([tcp(1) | options, back])
    received = {"tcp1": 60 * (1012.0 if timestamps else 1000.0), "cbr": 30 * 500.0}
    crossed = crossings(scenario)["bottleneck:ba"]
    assert mean_packet_bytes(crossed, received) == pytest.approx(size)


def test_nothing_that_arrived_has_no_size():
    crossed = crossings(scenario_of([tcp(1)]))["bottleneck:ab"]
    assert math.isnan(mean_packet_bytes(crossed, {"tcp1": 0.0}))
    assert math.isnan(mean_packet_bytes([], {"tcp1": 9.0}))
