"""Each engine refuses unsupported settings by name, before anything runs."""

import pytest
from measurements.scenarios import (
    cake,
    cbr,
    codel,
    droptail,
    dumbbell,
    link,
    linux_red,
    linux_tcp,
    listed,
    pfifo,
    pie,
    red,
    single_link,
    tcp,
)
from pydantic import ValidationError
from replication.engines.catalogue import ENGINES
from replication.study.scenario import Scenario

SHAPER = {"kind": "token_bucket", "burst_bytes": 1600, "line_rate_bps": 1e9}
CUBIC = {"congestion_control": "cubic"}
NS2_LINUX = {"sack": True, "limited_transmit": True}
FLOWS = {
    "ns3": [
        ({"congestion_control": "westwood", "recovery": "prr"}, "westwood with PRR"),
        ({"congestion_control": "westwood", "ecn": True}, "westwood with ECN"),
        ({"congestion_control": "tahoe", "sack": True}, "tahoe with SACK"),
        ({"congestion_control": "reno", "recovery": "prr"}, "reno with SACK or PRR"),
        ({"congestion_control": "ledbat"}, "ledbat without timestamps"),
        ({"congestion_control": "bbr"}, "bbr with neither SACK"),
        ({"congestion_control": "dctcp"}, "dctcp without ECN"),
        ({"congestion_control": "tahoe", "ecn": True}, "tahoe with ECN"),
    ],
    "ns2": [
        ({"congestion_control": "bbr"}, "'bbr'"),
        ({"congestion_control": "vegas", "sack": True}, "vegas with SACK"),
        ({"recovery": "prr"}, "with PRR"),
        ({"congestion_control": "vegas", "ecn": True}, "vegas with ECN"),
        ({"congestion_control": "cubic"}, "cubic without SACK"),
        ({"congestion_control": "cubic"} | NS2_LINUX | {"cubic_beta": 0.7}, "beta other than 0.8"),
        ({"congestion_control": "cubic"} | NS2_LINUX | {"cubic_hystart": True}, "with HyStart"),
        ({"delayed_ack_segments": 3}, "more than two segments"),
        # Its agents send data on the SYN's acknowledgement, whatever the setting.
        ({"connect_s": 0.5, "start_s": 1}, "connection before"),
    ],
    "linux": [
        ({"congestion_control": "tahoe"}, "'tahoe'"),
        ({"congestion_control": "dctcp"}, "dctcp without ECN"),
        ({"congestion_control": "lp"}, "lp without timestamps"),
        ({"congestion_control": "cubic", "cubic_beta": 1e-4}, "beta of 0 or 1 in 1024ths"),
        ({"recovery": "classic"}, "recovery other than PRR"),
        ({"limited_transmit": False}, "without limited transmit"),
        ({"delayed_ack_segments": 3}, "more than two segments"),
        ({"delayed_ack_segments": 2}, "timeout other than 0.04 s"),
        ({"initial_rto_s": 3}, "initial RTO other than 1 s"),
        ({"clock_granularity_s": 0.001}, "clock granularity other than 0.004 s"),
        ({"minimum_rto_s": 0.201}, "not a multiple of 0.004 s"),
        ({"minimum_rto_s": 120.004}, "minimum RTO above 120 s"),
        ({"maximum_window_bytes": 1999}, "maximum window of 1999 bytes, but from 2000"),
        ({"maximum_window_bytes": (1 << 28) + 1}, "to 268435456"),
        ({"initial_ssthresh_bytes": 12000}, "initial ssthresh"),
        ({"segment_bytes": 80}, "segments of 80 bytes, but from 88"),
    ],
}
FQ_CODEL = codel(kind="fq_codel")
FQ_PIE = pie(kind="fq_pie")
QUEUES = {
    "ns2": [
        (codel(), "'codel'"),
        (FQ_PIE, "'fq_pie'"),
        (red(5, 15) | {"device_queue_packets": 2}, "device queue of more than one"),
        (red(0, 15), "minimum threshold of 0"),
    ],
    "linux": [
        (red(5, 15), "gentle"),
        (linux_red(5, 15) | {"byte_mode": True}, "counts bytes"),
        (linux_red(5, 15) | {"wait": True}, "waits"),
        (linux_red(5, 15) | {"queue_weight": 0.002}, "not a power of two"),
        (linux_red(5, 15) | {"queue_weight": 2.0**-32}, "so low a weight"),
        # 5000 packets of 1000 bytes with a weight of 2^-9 are more than 31 bits hold.
        (linux_red(5, 5000), "thresholds this high"),
        (codel(target_s=0.0050001), "whole microseconds"),
        (FQ_CODEL | {"buckets": 65537}, "65536 buckets"),
        (FQ_CODEL | {"quantum_bytes": 255}, "quantum below 256"),
    ],
    "ns3": [(FQ_PIE, "'fq_pie'"), (cake(), "'cake'")],
}


def flat(table):
    """Return the rows of a table, each with its engine."""
    rows = []
    for engine, entries in table.items():
        rows += [(engine, *entry) for entry in entries]
    return rows


def flow(engine, name="t", control="", **changes):
    """Return a flow that an engine supports."""
    if engine == "linux":
        return linux_tcp(name, control or "linuxreno", **changes)
    return tcp(name, control or "newreno", **changes)


def refusal(engine, document):
    """Return an engine's one-line message about a scenario."""
    message = ENGINES[engine].refusal(Scenario.model_validate(document))
    assert "\n" not in message and (not message or message.startswith(f"{engine} has no "))
    return message


BYTES = {"kind": "droptail", "limit_bytes": 9000}
FASTER, LOSSY = {"at_s": 1, "rate_bps": 3e6}, {"at_s": 1, "loss_ab": 0.1}
SLOWEST = {"at_s": 1, "rate_bps": 3}
DEEP = pfifo(20) | {"device_queue_packets": 5}


def wire(**changes):
    return link("wire", "s0", "d0", 2e6, 0.02, **changes)


@pytest.mark.parametrize("engine", ENGINES)
def test_supported_queues_and_links_are_accepted(engine):
    queues = [droptail(20), BYTES, pfifo(20)]
    queues += [linux_red(5, 15) if engine == "linux" else red(5, 15)]
    queues += [] if engine == "ns2" else [codel(), FQ_CODEL, pie()]
    queues += [FQ_PIE, cake()] if engine == "linux" else []
    for queue in queues:
        assert refusal(engine, dumbbell([flow(engine), cbr("c", 1e5)], queue=queue)) == ""
    document = single_link([flow(engine)], queue=droptail(5))
    document["links"][0] |= {"jitter_s": 0.001}
    if engine != "ns2":
        document["links"][0] |= {"shaper_ab": SHAPER, "shaper_ba": SHAPER, "frame_bytes": 14}
    assert refusal(engine, document) == ""


@pytest.mark.parametrize(
    ("engine", "flows"),
    [
        ("ns2", [{"congestion_control": "vegas", "start_s": 1, "connect_s": 0.5}]),
        ("ns2", [NS2_LINUX | {"congestion_control": "linuxreno", "start_s": 1, "connect_s": 0.5}]),
        ("ns2", [NS2_LINUX | {"congestion_control": "cubic", "cubic_beta": 0.8}]),
        # One flow leaves to the kernel what another sets.
        ("linux", [CUBIC, CUBIC | {"cubic_beta": 0.7}]),
    ],
)
def test_supported_settings_of_flows_are_accepted(engine, flows):
    named = [flow(engine, f"f{i}") | changes for i, changes in enumerate(flows)]
    assert refusal(engine, single_link(named)) == ""


@pytest.mark.parametrize(("engine", "changes", "words"), flat(FLOWS))
def test_a_flow_that_an_engine_lacks_is_refused(engine, changes, words):
    assert words in refusal(engine, single_link([flow(engine) | changes]))


@pytest.mark.parametrize(("engine", "queue", "words"), flat(QUEUES))
def test_a_queue_that_an_engine_lacks_is_refused(engine, queue, words):
    assert words in refusal(engine, single_link([flow(engine)], queue=queue))


@pytest.mark.parametrize(
    ("engine", "queue", "changes", "words"),
    [
        ("ns2", droptail(), {"shaper_ab": SHAPER}, "shaper"),
        ("ns2", droptail(), {"frame_bytes": 14}, "frame_bytes"),
        ("ns2", droptail(), {"changes": [FASTER]}, "link that changes"),
        ("ns2", droptail(), {"opportunities_ba": [1]}, "link with opportunities"),
        ("ns3", droptail(), {"shaper_ba": SHAPER | {"kind": "tbf"}}, "shaper 'tbf'"),
        ("linux", droptail(), {"shaper_ab": SHAPER | {"kind": "tbf", "burst_bytes": 1053}}, "1054"),
        ("linux", droptail(), {"jitter_s": 4.5}, "jitter above 4 s"),
        ("linux", droptail(), {"rate_bps": 3.0}, "8 bit/s"),
        ("linux", droptail(), {"changes": [SLOWEST]}, "8 bit/s"),
        ("linux", linux_red(5, 15), {"changes": [FASTER]}, "RED where"),
        ("linux", linux_red(5, 15), {"opportunities_ab": [1]}, "RED where"),
        ("ns3", droptail(), {"frame_bytes": 1}, "frame_bytes of 1"),
        ("ns3", BYTES, {"frame_bytes": 14}, "limits in bytes"),
    ],
)
def test_a_link_that_an_engine_lacks_is_refused(engine, queue, changes, words):
    document = single_link([flow(engine)], queue=queue)
    assert refusal(engine, document) == ""
    document["links"][0] |= changes
    assert words in refusal(engine, document)


@pytest.mark.parametrize(
    ("control", "changes"), [("vegas", {"vegas_alpha_packets": 1}), ("cubic", {"cubic_beta": 0.5})]
)
def test_flows_that_need_different_kernel_settings_are_refused(control, changes):
    flows = [flow("linux", "a", control), flow("linux", "b", control, **changes)]
    assert next(iter(changes)) in refusal("linux", single_link(flows))
    assert refusal("linux", single_link([flows[0], flow("linux", "b", "bic", **changes)])) == ""


def tuned(window):
    windows = {"a": 3 << 20, "b": 9999, "c": window}
    return [flow("linux", name, maximum_window_bytes=w) for name, w in windows.items()]


@pytest.mark.parametrize(
    ("flows", "changes", "words"),
    [
        # The kernel tunes the larger windows itself, and has one bound for all.
        (tuned(None), {}, "3145728"),
        (tuned(9999), {"sampling_interval_s": 1e-6}, "but for 10000000"),
        ([cbr(f"c{i}", 1e3) for i in range(5001)], {}, "5001 flows"),
    ],
)
def test_scenarios_beyond_the_limits_of_the_kernel_are_refused(flows, changes, words):
    assert words in refusal("linux", single_link(flows, **changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"queue": linux_red(5, 15)}, "merged packets"),
        ({"loss": listed(3)}, "listed losses"),
    ],
)
def test_settings_that_count_packets_are_refused_with_segmentation_offload(changes, words):
    document = single_link([flow("linux")], **changes)
    assert refusal("linux", document) == ""
    assert words in refusal("linux", document | {"host": {"segmentation_offload": True}})


def test_memory_per_segment_is_refused_with_segmentation_offload():
    document = single_link([flow("linux")])
    host = {"device_queue": True, "segment_memory_bytes": 4352}
    assert refusal("linux", document | {"host": host}) == ""
    merging = document | {"host": host | {"segmentation_offload": True}}
    assert "segment_memory_bytes" in refusal("linux", merging)


@pytest.mark.parametrize(
    ("place", "value", "word"),
    [
        (["links", 0, "shaper_ab"], SHAPER | {"line_rate_bps": 1e5}, "line_rate_bps is below"),
        (["links", 0, "shaper_ba"], SHAPER | {"burst_bytes": 15_000_001}, "exceed 60 s"),
        (["links", 0, "changes"], [FASTER, FASTER], "at_s"),
        (["links", 0, "changes"], [{"at_s": 1}], "changes nothing"),
        (["links", 0], wire(changes=[FASTER], opportunities_ba=[1]), "it has opportunities_ba"),
        (["links", 0], wire(changes=[FASTER], shaper_ab=SHAPER), "it has shaper_ab"),
        (["links", 0], wire(changes=[LOSSY], loss_ab=listed(3)), "since it is listed"),
        (["links", 0], wire(opportunities_ab=[1], frame_bytes=14), "frame_bytes"),
        (["links", 0, "opportunities_ab"], [0, 5, 3], "3 follows 5"),
        (["links", 0, "opportunities_ab"], [0, 0], "above 0"),
        (["links", 0, "opportunities_ab"], {"file": "../x", "sha256": "0" * 64}, "file.file"),
        (["links", 0], wire(opportunities_ab=[1], queue_ab=DEEP), "has no device_queue_packets"),
        (["flows", 0, "connect_s"], 0.5, "connect_s"),
        (["links", 0, "queue_ab"], droptail() | {"limit_bytes": 1}, "exactly one"),
        (["links", 0, "queue_ab"], red(20, 10), "minimum_threshold_packets"),
        (["nodes"], ["s0", "../b"], "nodes.1"),
        (["flows", 0, "destination"], "s0", "same node"),
        (["links", 0, "loss_ab"], listed(1, flow="x"), "'x'"),
        (["flows", 1, "id"], "t", "duplicate flow id"),
        (["flows", 0, "maximum_window_bytes"], 999, "maximum_window_bytes"),
        (["flows", 0, "congestion_control"], "[exit]", "congestion_control"),
        (["sampling_interval_s"], 1e-9, "rows of series"),
    ],
)
def test_an_invalid_value_is_refused_by_its_field(place, value, word):
    document = single_link([tcp("t", "newreno"), cbr("c", 1e5)])
    target = document
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    with pytest.raises(ValidationError) as caught:
        Scenario.model_validate(document)
    assert word in str(caught.value)


def test_a_packet_larger_than_an_opportunity_is_refused():
    document = single_link([tcp("t", "newreno", segment_bytes=1461)])
    document["links"][0]["opportunities_ab"] = [1]
    with pytest.raises(ValidationError, match=r"t: segment_bytes .*1501"):
        Scenario.model_validate(document)
    document["flows"][0]["segment_bytes"] = 1460
    Scenario.model_validate(document)
