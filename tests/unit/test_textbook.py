"""The textbook set-up: the rule worked by hand on a small study, and what stays."""

import pytest
from pydantic import ValidationError
from replication.base.errors import InputError
from replication.base.table import read_rows, write_table
from replication.design.config import Extent
from replication.design.design import TextbookRule, combinations, design_study, engines_by_setup
from replication.design.textbook_table import TEXTBOOK, TEXTBOOK_COLUMNS, rows_of, textbook_rows
from replication.metrics.results import Results
from replication.metrics.unfilled import unfilled_points
from replication.study.setup import Setup
from replication.study.study import Study

from tests.unit.conftest import CLAIM, ROOT, study_document

#: Propagation takes 10 + 50 + 10 ms each way, so a round trip 140 ms; a packet has 1000 bytes.
PRODUCT_BYTES = 1_000_000 * 0.140 / 8
ONCE = {"replicates": [{"count": 1}], "levels": "all"}


def document(**bottleneck):
    """One point of the synthetic study, with other keys of its bottleneck."""
    made = study_document(claims=[CLAIM])
    experiment = made["experiments"][0]
    for factor in experiment["factors"]:
        factor["levels"] = factor["levels"][:1]
    links = {link["id"]: link for link in experiment["topology"]["links"]}
    links["bottleneck"].update(bottleneck)
    return made


def with_link(made, name, **keys):
    """The same study with other keys of one of its links."""
    links = made["experiments"][0]["topology"]["links"]
    next(link for link in links if link["id"] == name).update(keys)
    return made


def cbr(name, source, **times):
    """A flow of 50 packets a second."""
    flow = {"kind": "cbr", "id": name, "source": source, "destination": "d1"}
    return {**flow, "rate_bps": 2.0e5, "packet_bytes": 500, **times}


def under_rule(made):
    study = Study.model_validate(made)
    experiment = study.experiments[0]
    levels, values = next(combinations(experiment.factors))
    return TextbookRule(study, experiment).scenario(levels, values)


def link_of(scenario, name):
    return next(link for link in scenario.links if link.id == name)


def parameter(value, tag="published"):
    tags = {
        "published": {"place": "Table 1"},
        "assumed": {"reason": "r", "source": "s", "choices": [value]},
    }
    return {"value": value, tag: tags[tag]}


def test_buffer_is_the_bdp_in_whole_packets():
    # 17,500 bytes are 17.5 packets of 1000.
    bottleneck = link_of(under_rule(document()), "bottleneck")
    assert (bottleneck.queue_ab.kind, bottleneck.queue_ab.limit_packets) == ("droptail", 18)


def test_rounding_errors_of_floats_add_no_packet():
    # 1.2 Mbit/s x 140 ms are 21 packets; as floats 21,000.000000000004 bytes.
    exact = under_rule(document(rate_bps=1.2e6))
    assert link_of(exact, "bottleneck").queue_ab.limit_packets == 21


def test_window_is_four_times_bdp_and_buffer_and_no_threshold_limits():
    made = document()
    made["experiments"][0]["flows"][0]["initial_ssthresh_bytes"] = 5000
    for flow in under_rule(made).flows:
        assert flow.maximum_window_bytes == 4 * (PRODUCT_BYTES + PRODUCT_BYTES) == 140_000
        assert flow.initial_ssthresh_bytes is None


def test_window_is_that_of_the_largest_point_and_buffers_are_each_points():
    made = document()
    factor = made["experiments"][0]["factors"][1]
    low, high = (dict(factor["levels"][0], key=key) for key in ("low", "high"))
    high["set"] = {"bottleneck_s": 0.23}
    factor["levels"] = [low, high]
    study = Study.model_validate(made)
    rule, points = TextbookRule(study, study.experiments[0]), []
    for levels, values in combinations(study.experiments[0].factors):
        points.append(rule.scenario(levels, values))
    # A round trip of 500 ms makes a product of 62,500 bytes.
    assert [p.flows[0].maximum_window_bytes for p in points] == [500_000, 500_000]
    assert [link_of(p, "bottleneck").queue_ab.limit_packets for p in points] == [18, 63]


def test_buffer_holds_ten_full_packets_and_four_a_flow():
    short = document(delay_s=0.001)
    # 1 Mbit/s x 42 ms are 5,250 bytes: less than ten packets.
    assert link_of(under_rule(short), "bottleneck").queue_ab.limit_packets == 10
    flows = short["experiments"][0]["flows"]
    flows[:] = [{**flows[0], "id": f"tcp{number}"} for number in range(3)]
    assert link_of(under_rule(short), "bottleneck").queue_ab.limit_packets == 12


@pytest.mark.parametrize(
    ("queue", "key", "limit"),
    [
        ({"kind": "droptail", "limit_bytes": 1}, "limit_bytes", 17_500),
        ({"kind": "pfifo", "limit_packets": 1, "device_queue_packets": 9}, "limit_packets", 18),
        ({"kind": "codel", "limit_packets": 1, "target_s": 0.007, "interval_s": 0.2}, "", 18),
        ({"kind": "cake", "target_s": 0.005, "interval_s": 0.1}, "memory_limit_bytes", 17_500),
        ({"kind": "red", "byte_mode": True}, "limit_packets", 35),
        ({"kind": "red", "byte_mode": False}, "limit_packets", 18),
    ],
    ids=["bytes", "pfifo", "codel", "cake", "mean packets", "red"],
)
def test_buffer_has_the_queues_own_unit_and_only_its_limit_changes(queue, key, limit):
    if queue["kind"] == "red":
        of_red = {"limit_packets": 50, "minimum_threshold_packets": 5.0, "queue_weight": 0.1}
        of_red |= {"maximum_threshold_packets": 15.0, "maximum_probability": 0.3}
        queue = {**of_red, "mean_packet_bytes": 500, **queue}
    made = link_of(under_rule(document(queue_ab=queue)), "bottleneck").queue_ab
    expected = {**queue, key or "limit_packets": limit}
    if "device_queue_packets" in queue:
        expected["device_queue_packets"] = 1
    assert made.model_dump().items() >= expected.items()


def test_all_other_queues_become_fifos_that_hold_every_window():
    red = {"kind": "codel", "limit_packets": 5, "target_s": 0.005, "interval_s": 0.1}
    made = document(queue_ba=red)
    made["experiments"][0]["flows"] += [
        cbr("early", "s1", start_s=1.0, stop_s=3.0),
        cbr("late", "s1", start_s=8.0, stop_s=20.0),
    ]
    scenario = under_rule(made)
    # Two copies of two windows of 140,000 / 960 segments, and twice 2 s of 50 packets a second.
    least = 2 * 2 * 146 + 200
    others = [link.queue_ba for link in scenario.links]
    others += [link.queue_ab for link in scenario.links if link.id != "bottleneck"]
    assert {queue.kind for queue in others} == {"droptail"}
    assert {queue.limit_packets for queue in others} == {least + 2}


def test_bdp_has_the_highest_rate_and_the_longest_round_trip():
    changes = [{"at_s": 5.0, "rate_bps": 2.0e6}, {"at_s": 6.0, "delay_s": 0.06}]
    changing = link_of(under_rule(document(changes=changes)), "bottleneck")
    # 2 Mbit/s x 160 ms.
    assert changing.queue_ab.limit_packets == 40
    # The second flow's round trip is 200 ms.
    longer = under_rule(with_link(document(), "in2", delay_s=0.04))
    assert link_of(longer, "bottleneck").queue_ab.limit_packets == 25


def test_a_full_packet_is_the_largest_with_the_links_frame():
    made = document(delay_s=0.001, frame_bytes=26)
    made["experiments"][0]["flows"][1]["segment_bytes"] = 1460
    queue = {"kind": "droptail", "limit_bytes": 1}
    bottleneck = with_link(made, "bottleneck", queue_ab=queue)
    # Ten times 1460 bytes with headers of 40 and the frame.
    assert link_of(under_rule(bottleneck), "bottleneck").queue_ab.limit_bytes == 10 * 1526


def test_flows_of_the_other_direction_do_not_count():
    made = document(delay_s=0.001)
    flow = made["experiments"][0]["flows"][0]
    back = {"source": "d1", "destination": "s1"}
    made["experiments"][0]["flows"] += [{**flow, "id": f"back{n}", **back} for n in range(3)]
    assert link_of(under_rule(made), "bottleneck").queue_ab.limit_packets == 10


def test_the_monitored_direction_is_the_bottleneck():
    made = document(queue_ba={"kind": "droptail", "limit_bytes": 1})
    experiment = made["experiments"][0]
    experiment["topology"]["monitors"] = [{"link": "bottleneck", "direction": "ba"}]
    for flow, ends in zip(experiment["flows"], ("1", "2"), strict=True):
        flow |= {"source": f"d{ends}", "destination": f"s{ends}"}
    bottleneck = link_of(under_rule(made), "bottleneck")
    assert bottleneck.queue_ba.limit_bytes == 17_500
    assert bottleneck.queue_ab.limit_packets > 18


def test_a_monitored_queue_that_carries_no_tcp_flow_is_no_bottleneck():
    made = document()
    monitors = made["experiments"][0]["topology"]["monitors"]
    monitors.append({"link": "bottleneck", "direction": "ba"})
    bottleneck = link_of(under_rule(made), "bottleneck")
    assert bottleneck.queue_ab.limit_packets == 18
    assert bottleneck.queue_ba.limit_packets > 18


def test_jitter_has_the_shortest_round_trip_and_the_fastest_bottleneck():
    # At 100 kbit/s a packet takes 80 ms. Round trips are 20 and 140 ms.
    slow = document(rate_bps=1.0e5)
    slow["experiments"][0]["flows"][0]["destination"] = "left"
    assert link_of(under_rule(slow), "in2").jitter_s == 0.002
    made = document()
    made["experiments"][0]["topology"]["monitors"].append({"link": "out1", "direction": "ab"})
    # A packet takes 8 ms at the bottleneck, and 0.8 ms at 10 Mbit/s.
    assert link_of(under_rule(made), "in1").jitter_s == 0.0008


def test_senders_delay_packets_by_a_packets_time_or_a_tenth_of_the_round_trip():
    scenario = under_rule(document())
    # A packet takes 8 ms, a tenth of the round trip is 14 ms.
    assert {link.id: link.jitter_s for link in scenario.links if link.jitter_s} == {
        "in1": 0.008,
        "in2": 0.008,
    }
    # So do senders of CBR.
    made = document()
    made["experiments"][0]["flows"].append(cbr("cbr", "right", start_s=0.0, stop_s=9.0))
    assert link_of(under_rule(made), "out1").jitter_s == 0.008
    # At 100 kbit/s a packet takes 80 ms.
    capped = under_rule(document(rate_bps=1.0e5))
    assert link_of(capped, "in1").jitter_s == 0.014


def test_a_bottleneck_at_a_sender_has_no_jitter():
    made = document()
    experiment = made["experiments"][0]
    experiment["topology"]["monitors"] = [{"link": "in1", "direction": "ab"}]
    scenario = under_rule(made)
    assert link_of(scenario, "in1").jitter_s == 0
    assert link_of(scenario, "in2").jitter_s > 0


def test_printed_settings_stay():
    made = document(
        queue_ab={"kind": "droptail", "limit_packets": "$buffer"},
        queue_ba={"kind": "droptail", "limit_packets": "$buffer"},
    )
    made["parameters"]["buffer"] = parameter(7)
    made["parameters"]["window"] = parameter(12)
    flow = made["experiments"][0]["flows"][0]
    flow["maximum_window_bytes"] = "$window * $segment_bytes"
    scenario = under_rule(made)
    bottleneck = link_of(scenario, "bottleneck")
    assert bottleneck.queue_ab.limit_packets == bottleneck.queue_ba.limit_packets == 7
    # The second flow's window is by the rule: four times the product and seven packets.
    assert [f.maximum_window_bytes for f in scenario.flows] == [12 * 960, 4 * (17_500 + 7_000)]
    made["parameters"]["buffer"] = parameter(7, "assumed")
    made["parameters"]["window"] = parameter(12, "assumed")
    scenario = under_rule(made)
    assert link_of(scenario, "bottleneck").queue_ab.limit_packets == 18
    assert {f.maximum_window_bytes for f in scenario.flows} == {140_000}


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("limit_bytes", {"kind": "droptail"}),
        ("memory_limit_bytes", {"kind": "cake", "target_s": 0.005, "interval_s": 0.1}),
    ],
)
def test_a_printed_limit_in_bytes_stays_and_counts_for_the_window(key, kind):
    made = document(queue_ab={**kind, key: "$buffer"})
    made["parameters"]["buffer"] = parameter(7_500)
    scenario = under_rule(made)
    assert getattr(link_of(scenario, "bottleneck").queue_ab, key) == 7_500
    assert scenario.flows[0].maximum_window_bytes == 4 * (17_500 + 7_500)


def test_a_printed_threshold_stays():
    made = document()
    made["parameters"]["threshold"] = parameter(5000)
    made["experiments"][0]["flows"][0]["initial_ssthresh_bytes"] = "$threshold"
    assert [flow.initial_ssthresh_bytes for flow in under_rule(made).flows] == [5000, None]


def test_a_window_by_a_parameter_of_its_name_stays():
    made = document()
    made["parameters"]["maximum_window_bytes"] = parameter(20_000)
    assert {flow.maximum_window_bytes for flow in under_rule(made).flows} == {20_000}


@pytest.mark.parametrize(
    ("window", "further", "stays"),
    [
        ("$window * $segment_bytes", parameter(12), True),
        # A part of what is printed is assumed, or one of two factors.
        ("$window * $segment_bytes", parameter("$other"), False),
        ("$window * $other", parameter(12), False),
    ],
)
def test_a_product_of_parameters_is_printed_if_all_its_factors_are(window, further, stays):
    made = document()
    made["parameters"] |= {"window": further, "other": parameter(1000, "assumed")}
    for flow in made["experiments"][0]["flows"]:
        flow["maximum_window_bytes"] = window
    expected = 12 * 960 if stays else 140_000
    assert {flow.maximum_window_bytes for flow in under_rule(made).flows} == {expected}


@pytest.mark.parametrize(("tag", "limit"), [("published", 7), ("assumed", 18)])
def test_a_limit_written_in_a_discipline_is_printed_with_it(tag, limit):
    made = document(queue_ab="$discipline")
    discipline = {"kind": "droptail", "limit_packets": 7}
    made["parameters"]["discipline"] = parameter(discipline, tag)
    assert link_of(under_rule(made), "bottleneck").queue_ab.limit_packets == limit


def test_printed_jitter_and_device_queues_stay():
    queue = {"kind": "pfifo", "limit_packets": 20, "device_queue_packets": "$below"}
    made = with_link(document(queue_ab=queue), "in1", jitter_s="$jitter")
    for tag, jitter_s, below in (("published", 0.003, 9), ("assumed", 0.008, 1)):
        made["parameters"] |= {"jitter": parameter(0.003, tag), "below": parameter(9, tag)}
        scenario = under_rule(made)
        assert link_of(scenario, "in1").jitter_s == jitter_s
        assert link_of(scenario, "in2").jitter_s == 0.008
        assert link_of(scenario, "bottleneck").queue_ab.device_queue_packets == below


def test_a_limit_within_a_printed_discipline_stays_only_if_it_is_printed():
    made = document(queue_ab="$discipline")
    made["parameters"]["discipline"] = parameter({"kind": "droptail", "limit_packets": "$buffer"})
    made["parameters"]["buffer"] = parameter(7, "assumed")
    assert link_of(under_rule(made), "bottleneck").queue_ab.limit_packets == 18
    made["parameters"]["buffer"] = parameter(7)
    assert link_of(under_rule(made), "bottleneck").queue_ab.limit_packets == 7
    # A level's values are printed if its factor is.
    factor = made["experiments"][0]["factors"][1]
    made["parameters"]["buffer"] = parameter(7, "assumed")
    factor["levels"][0]["set"] = {"buffer": 5}
    assert link_of(under_rule(made), "bottleneck").queue_ab.limit_packets == 5
    factor.pop("published")
    factor["assumed"] = parameter(1, "assumed")["assumed"]
    made["parameters"]["buffer"] = parameter(7)
    assert link_of(under_rule(made), "bottleneck").queue_ab.limit_packets == 18


def test_values_decided_by_a_study_apply_to_the_textbook_setup_alone():
    made = document()
    made["textbook"] = [{"parameter": "sweep/duration_s", "value": 4.0, "reason": "r"}]
    study = Study.model_validate(made)
    runs = design_study(study, Extent(**ONCE, textbook="all"), ["ns3"])
    assert {run.setup: run.scenario.duration_s for run in runs} == {
        Setup.DEFAULTS: 10.0,
        Setup.TEXTBOOK: 4.0,
    }
    assert all(run.whole_s == run.scenario.duration_s for run in runs)
    made["textbook"][0]["parameter"] = "sweep/duration"
    with pytest.raises(ValidationError, match=r"textbook: parameter.*sweep/duration"):
        Study.model_validate(made)


def test_a_decided_delay_counts_for_the_window():
    made = document()
    made["textbook"] = [{"parameter": "bottleneck_s", "value": 0.23, "reason": "r"}]
    assert under_rule(made).flows[0].maximum_window_bytes == 500_000


def test_a_tier_shortens_runs_under_both_setups():
    study = Study.model_validate(document())
    runs = design_study(study, Extent(**ONCE, textbook="all", cost_limit_s=0.05), ["ns3"])
    lengths = {run.setup: (run.scenario.duration_s, run.whole_s) for run in runs}
    assert lengths[Setup.DEFAULTS] == lengths[Setup.TEXTBOOK]
    assert lengths[Setup.TEXTBOOK][0] < lengths[Setup.TEXTBOOK][1] == 10.0


def test_a_decided_value_is_no_longer_printed():
    made = document(queue_ab={"kind": "droptail", "limit_packets": "$buffer"})
    made["parameters"]["buffer"] = parameter(7)
    made["textbook"] = [{"parameter": "buffer", "value": 5, "reason": "r"}]
    assert link_of(under_rule(made), "bottleneck").queue_ab.limit_packets == 18


def test_windows_of_all_copies_of_a_flow_stay():
    made = document()
    made["parameters"] |= {"copies": parameter(1, "assumed"), "window": parameter(12)}
    made["textbook"] = [{"parameter": "copies", "value": 3, "reason": "r"}]
    experiment = made["experiments"][0]
    window = "$window * $segment_bytes"
    flow = experiment["flows"][0]
    experiment["flows"] = [
        {**flow, "id": "tcp{i}", "repeat": "$copies", "maximum_window_bytes": window}
    ]
    assert [flow.maximum_window_bytes for flow in under_rule(made).flows] == 3 * [12 * 960]


def test_a_study_without_a_monitored_queue_is_refused_with_a_remedy():
    made = document()
    made["experiments"][0]["topology"]["monitors"] = []
    with pytest.raises(InputError, match=r"experiment sweep.*topology.monitors.*setups") as error:
        under_rule(made)
    assert error.value.place == ("experiments", "sweep")


def test_the_tier_decides_on_which_engines_the_textbook_setup_runs():
    study, engines = Study.model_validate(document()), ["ns3", "ns2"]

    def on(textbook, study=study, engines=engines):
        return engines_by_setup(study, Extent(**ONCE, textbook=textbook), engines)

    assert on("none") == on(["other"]) == {Setup.DEFAULTS: engines}
    assert on("primary")[Setup.TEXTBOOK] == ["ns2"]
    assert on("primary", engines=["ns3"])[Setup.TEXTBOOK] == ["ns3"]
    assert on("all")[Setup.TEXTBOOK] == engines
    assert on(["synthetic"])[Setup.TEXTBOOK] == ["ns2"]
    measured = Study.model_validate(document() | {"setups": ["defaults"]})
    assert on("all", measured) == {Setup.DEFAULTS: engines}


def test_the_textbook_setup_has_the_tiers_number_of_runs():
    made = document()
    made["experiments"][0]["replicates_at_least"] = {"count": 7}
    extent = {"replicates": [{"count": 5}], "levels": "all", "textbook": "all"}
    for is_heeded, count in ((False, 5), (True, 7)):
        tier = Extent(**extent, heeds_replicates_at_least=is_heeded)
        runs = design_study(Study.model_validate(made), tier, ["ns3"])
        setups = [run.setup for run in runs]
        assert setups.count(Setup.DEFAULTS) == count
        assert setups.count(Setup.TEXTBOOK) == 5
        assert len({run.scenario_id for run in runs}) == count + 5


def test_loaded_results_have_a_single_setup(world):
    study = world.study()
    world.results(study, textbook="all")
    defaults, textbook = Results.load_each(world.folder, study.id)
    assert (defaults.setup, textbook.setup) == (Setup.DEFAULTS, Setup.TEXTBOOK)
    assert len(defaults.design) == len(textbook.design) > 0
    for results in (defaults, textbook):
        assert set(results.flows["scenario"]) == set(results.design["scenario"])
        assert set(results.scenarios) == set(results.design["scenario"])
    assert not set(defaults.scenarios) & set(textbook.scenarios)


def test_a_point_whose_link_never_fills_is_named(world):
    """Slow points drop, middle ones queue on one run of three, fast ones do neither."""

    def flows(access, **run):
        return {"packets_dropped": 1.0 if access == "slow" else 0.0}

    def queued(flow, replicate, access, **run):
        if flow != "bottleneck:ab":
            return []
        packets = 1.0 if access == "mid" and replicate == 1 else 0.9
        return [{"time_s": float(t), "queue_packets": packets} for t in (1, 2)]

    study = world.study()
    results = world.results(
        study,
        flows=flows,
        series=queued,
    )
    assert {point.point for point in unfilled_points(results)} == {
        f"variant={variant},access=fast" for variant in ("reno", "vegas", "cubic")
    }


def test_the_committed_table_matches_the_code(tmp_path):
    write_table(tmp_path / "now.csv", textbook_rows(ROOT), TEXTBOOK_COLUMNS)
    now = read_rows(tmp_path / "now.csv", TEXTBOOK_COLUMNS)
    committed = read_rows(ROOT / TEXTBOOK, TEXTBOOK_COLUMNS)
    assert now == committed, "run `python workflow/scripts/write_textbook.py`"


def test_the_table_lists_buffer_window_and_jitter_of_the_runs():
    made = document()
    made["textbook"] = [{"parameter": "duration_s", "value": 4.0, "reason": "r"}]
    (row,) = rows_of(Study.model_validate(made))
    assert row["product_bytes"] == row["buffer_bytes"] == 17_500
    assert (row["limit"], row["unit"], row["jitter_s"]) == (18, "packets", 0.008)
    assert (row["window_bytes"], row["decided"]) == (140_000, '{"duration_s":4.0}')
