"""The input file: the same for every engine and exact, or an error that names the field."""

import importlib
import json
import math
import sys
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measurements.scenarios import linux_tcp, tcp
from replication.base.errors import InputError
from replication.design.config import load_study, load_tier
from replication.design.design import design_study
from replication.engines.catalogue import ENGINES, LINUX, NS2, NS3
from replication.engines.input_file import INPUT_FILE, input_text, write_inputs
from replication.engines.routing import Routes
from replication.study.scenario import Host, Scenario
from replication.study.variation import Variation, apply
from scipy.sparse.csgraph import shortest_path

from tests.unit.conftest import ROOT, minimal_scenario, missing_from

ENDS = {"source": "a", "destination": "b", "start_s": 0.25, "stop_s": 100.0}
OWN = ENDS | {"initial_window_segments": 2, "delayed_ack_segments": 2, "minimum_rto_s": 0.2}
TCP = tcp("t", "newreno", **OWN, initial_rto_s=1.0)
LINUX_TCP = linux_tcp("t", **OWN, delayed_ack_timeout_s=0.04)
END = minimal_scenario()["flows"][0] | {"source": "n0", "destination": "n1", "start_s": 1 - 1e-11}
LISTED = {"kind": "listed", "flow": "t", "data_packets": [9, 3, 9]}
INPUT = """\
input version 2 engine ns3 scenario {sha256}
run duration_ns 1000000000 sampling_interval_ns 100000000 seed 1
node id a
node id b
link id ab a 0 b 1 rate_bps 1000000.0 delay_ns 10000000 jitter_ns 0 frame_bytes 0
queue_ab kind droptail limit_packets 50 limit_bytes none
queue_ba kind droptail limit_packets 50 limit_bytes none
loss_ab kind listed flow 1 data_packets 3,9
flow id f source 0 destination 1 start_ns 0 stop_ns 1000000000 kind cbr rate_bps 100000.0 \
packet_bytes 500
flow id t source 0 destination 1 start_ns 250000000 stop_ns 1000000000 kind tcp \
connect_ns 250000000 congestion_control newreno recovery classic sack 0 timestamps 0 \
segment_bytes 1000 \
initial_window_segments 2 initial_ssthresh_bytes none maximum_window_bytes none \
delayed_ack_segments 2 delayed_ack_timeout_ns 200000000 minimum_rto_ns 200000000 \
initial_rto_ns 1000000000 clock_granularity_ns 1000000 limited_transmit 0 vegas_alpha_packets 2 \
vegas_beta_packets 4 vegas_gamma_packets 1 cubic_tcp_friendliness 1 cubic_fast_convergence 1 \
cubic_beta 0.7 cubic_hystart 1 stop_after_bytes none ecn 0 socket_samples 0
monitor link 0 direction ba
route link 0 direction ab to 1
route link 0 direction ba to 0
end
"""


def scenario(**changes):
    """Return a scenario of a CBR and a TCP flow over one link."""
    document = minimal_scenario()
    document["flows"].append(TCP)
    document["links"][0]["loss_ab"] = LISTED
    document["monitors"] = [{"link": "ab", "direction": "ba"}]
    return Scenario.model_validate(document | changes)


#: Used by the Python programs to read an input file.
sys.path.insert(0, str(ROOT / "workflow" / "engines" / "common"))
READER, DATA = importlib.import_module("input_reader"), importlib.import_module("scenario")


def read(text, engine, folder):
    """Return a scenario as a Python program reads it."""
    (folder / INPUT_FILE).write_text(text)
    return READER.read_input_file(str(folder / INPUT_FILE), engine)


def test_an_input_file_has_every_default_and_every_route(tmp_path):
    assert input_text(scenario(), NS3) == INPUT.format(sha256=scenario().sha256)
    (monitor,) = read(input_text(scenario(), NS2), "ns2", tmp_path).monitors
    assert monitor.hop == 1


@pytest.mark.parametrize(("engine", "beta", "hystart"), [(NS2, 0.8, False), (LINUX, 0.7, True)])
def test_defaults_that_depend_on_the_engine_are_in_its_input(engine, beta, hystart, tmp_path):
    flow = LINUX_TCP if engine == LINUX else TCP
    plain = {"links": minimal_scenario()["links"], "monitors": []}
    left = scenario(flows=[flow], **plain)
    stated = scenario(flows=[flow | {"cubic_beta": 0.25}], **plain)
    (default,) = read(input_text(left, engine), engine.name, tmp_path).flows
    assert (default.cubic_beta, default.cubic_hystart) == (beta, hystart)
    (chosen,) = read(input_text(stated, engine), engine.name, tmp_path).flows
    assert chosen.cubic_beta == 0.25


def test_a_program_reads_back_the_scenario_from_its_input(tmp_path):
    result = read(input_text(scenario(), NS2), "ns2", tmp_path)
    assert result.sha256 == scenario().sha256
    assert result.links[0].losses == (DATA.ListedLoss(1, [3, 9]), None)
    assert result.flows[0] == DATA.Cbr("f", 0, 1, 0, 10**9, 1e5, 500)
    assert (result.flows[1].segment_bytes, result.flows[1].sack) == (1000, False)
    assert (result.flows[1].maximum_window_bytes, result.flows[1].stop_ns) == (None, 10**9)
    assert DATA.Routes(result).path(1, 0) == [1]


def shuffled(value, random):
    """Return a JSON document whose keys are in another order."""
    if isinstance(value, list):
        return [shuffled(entry, random) for entry in value]
    if not isinstance(value, dict):
        return value
    keys = random.sample(list(value), len(value))
    return {key: shuffled(value[key], random) for key in keys}


def test_the_order_of_keys_is_free_and_unknown_or_missing_keys_are_refused(tmp_path):
    text = input_text(scenario(), NS2)
    document = json.loads(text)
    again = json.dumps(shuffled(document, Random(7)))
    assert again != text
    assert read(again, "ns2", tmp_path) == read(text, "ns2", tmp_path)
    document["links"][0]["queue_ab"]["surplus"] = 0
    with pytest.raises(READER.InputError, match=r"links\[0\]\.queue_ab\.surplus"):
        read(json.dumps(document), "ns2", tmp_path)
    del document["links"][0]["queue_ab"]["surplus"], document["flows"][1]["sack"]
    with pytest.raises(READER.InputError, match=r"flows\[1\]\.sack: .*missing"):
        read(json.dumps(document), "ns2", tmp_path)


@given(st.floats(1, 1e12), st.floats(0, 1))
def test_numbers_read_back_to_the_same_doubles(rate_bps, probability):
    link = minimal_scenario()["links"][0] | {"rate_bps": rate_bps}
    link["loss_ba"] = {"kind": "random", "probability": probability}
    text = input_text(scenario(links=[link]), NS3)
    words = text.split()
    assert float(words[words.index("rate_bps") + 1]) == rate_bps
    assert float(words[words.index("probability") + 1]) == probability


def chain(hops, **changes):
    """Return a scenario of a flow over a chain of links, the last of which may differ."""
    nodes = [f"n{i}" for i in range(hops + 1)]
    link = minimal_scenario()["links"][0]
    links = [link | {"id": f"l{i}", "a": nodes[i], "b": nodes[i + 1]} for i in range(hops)]
    flow = minimal_scenario()["flows"][0] | {"source": "n0", "destination": nodes[-1]}
    document = {"nodes": nodes, "links": links, "flows": [flow]}
    return Scenario.model_validate(minimal_scenario() | document | changes)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (chain(2, links=chain(1).links), "flow f.destination: 'n2'.*'n0'"),
        (chain(1, flows=[END]), "flow f: start_s"),
        (chain(1, duration_s=1e-3, sampling_interval_s=1e-10), "sampling_interval_s: 1e-10"),
    ],
)
def test_a_scenario_that_no_engine_can_run_is_refused(given, message, tmp_path):
    with pytest.raises(InputError, match=message):
        write_inputs(tmp_path / "run", given, NS3)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("engine", "most"), [(NS3, 250), (NS2, 250), (LINUX, 60)])
def test_a_path_longer_than_the_time_to_live_of_packets_is_refused(engine, most, tmp_path):
    text = input_text(chain(most), engine)
    routes = text.count("\nroute ") if engine == NS3 else len(json.loads(text)["routes"])
    assert routes == 2 * most
    with pytest.raises(InputError, match=f"{most + 1} hops"):
        input_text(chain(most + 1), engine)


def plain_path(nodes, links, source, destination):
    """Return the path by the distances of all nodes, with no short cut."""
    ways = [(2 * number, a, b) for number, (a, b) in enumerate(links)]
    ways = sorted([*ways, *((hop + 1, b, a) for hop, a, b in ways)])
    near = np.zeros((nodes, nodes))
    for a, b in links:
        near[a, b] = near[b, a] = 1
    hops = shortest_path(near)[destination]
    path, at = [], source
    while at != destination and math.isfinite(hops[at]):
        hop, at = next((h, b) for h, a, b in ways if a == at and hops[b] == hops[at] - 1)
        path.append(hop)
    return path


@pytest.mark.parametrize("seed", range(40))
def test_routes_have_the_fewest_hops_and_the_earlier_link_wins(seed):
    random = Random(seed)
    nodes = random.randint(2, 12)
    links = [tuple(random.sample(range(nodes), 2)) for _ in range(random.randint(1, 16))]
    routes = Routes(nodes, links)
    for source in range(nodes):
        for destination in set(range(nodes)) - {source}:
            expected = plain_path(nodes, links, source, destination)
            assert routes.path(source, destination) == expected


def test_the_input_file_is_a_part_of_every_fingerprint():
    for engine in ENGINES.values():
        assert {"input_file.py", "routing.py"} <= {p.name for p in engine.sources(ROOT)}
        # Images contain only programs; input files are made outside.
        assert not {"input_file.py"} & {p.name for p in engine.program_sources(ROOT)}


# -- hosts: a default one changes nothing; any other is a part of the scenario, or refused ---------

FAST = {"timer_hz": 1000, "clock_granularity_s": 0.001}


def designed(name, engine, **values):
    """Return a study's runs on an engine with different defaults."""
    study = apply(load_study(ROOT, name), Variation(defaults=values))
    return design_study(study, load_tier(ROOT, "quick"), [engine])


DEFAULT = Host().model_dump()


@pytest.mark.parametrize("same", [{"host": {}}, {"host": DEFAULT}, {"duration_s": 1}])
def test_stating_a_default_or_a_whole_number_for_a_float_keeps_the_id(same):
    given = scenario(**same)
    assert (given, given.id) == (scenario(), scenario().id)
    assert NS3.refusal(given) == NS2.refusal(given) == ""


def test_a_changed_host_changes_the_id_and_is_refused_by_simulators():
    bound = {"host": {"segmentation_offload": 8192}, "flows": [LINUX_TCP]}
    bound |= {"links": minimal_scenario()["links"], "monitors": []}
    host = json.loads(input_text(scenario(**bound), LINUX))["host"]
    assert host == DEFAULT | {"segmentation_offload": 8192}
    host = {"segmentation_offload": True, "timer_hz": 100}
    given = scenario(host=host)
    assert given.id != scenario().id
    again = Scenario.model_validate(json.loads(given.to_json()))
    assert again == given and again.host.model_dump() == DEFAULT | host
    for engine in (NS3, NS2):
        assert not missing_from(engine.refusal(given), engine.name, "'segmentation_offload'")


def test_assumed_parameters_of_a_study_set_the_host():
    # A merged packet is no segment of a size in memory.
    changes = {"segmentation_offload": True, "segment_memory_bytes": None, **FAST}
    runs = designed("kapadia", "linux", **changes)
    assert {run.scenario.host.segmentation_offload for run in runs} == {True}
    on_ns3 = designed("kapadia", "ns3", **changes)
    (refusal,) = {run.refusal for run in on_ns3}
    assert "'segmentation_offload'" in refusal
    host = json.loads(input_text(runs[0].scenario, LINUX))["host"]
    floor = {"loss_probe_floor": "2 jiffies", "device_queue": True}
    assert host == DEFAULT | floor | {"segmentation_offload": True, "timer_hz": 1000}
