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
from replication.design.config import load_study, load_tier
from replication.design.design import design_study
from replication.engines.catalogue import ENGINES, LINUX, NS2, NS3
from replication.engines.input_file import INPUT_FILE, input_text, write_inputs
from replication.engines.routing import Routes
from replication.study.errors import InputError
from replication.study.scenario import Scenario
from replication.study.variation import Variation, apply
from scipy.sparse.csgraph import shortest_path

from tests.engines.engine_scenarios import linux_tcp, tcp
from tests.unit.conftest import ROOT, minimal_scenario

ENDS = {"source": "a", "destination": "b", "start_s": 0.25, "stop_s": 100.0}
OWN = ENDS | {"initial_window_segments": 2, "delayed_ack_segments": 2, "minimum_rto_s": 0.2}
TCP = tcp("t", "newreno", **OWN, initial_rto_s=1.0)
LINUX_TCP = linux_tcp("t", **OWN, delayed_ack_timeout_s=0.04)
END = minimal_scenario()["flows"][0] | {"source": "n0", "destination": "n1", "start_s": 1 - 1e-11}
LISTED = {"kind": "listed", "flow": "t", "data_packets": [9, 3, 9]}
INPUT = """\
input version 1 engine ns2 scenario {sha256}
run duration_ns 1000000000 sampling_interval_ns 100000000 seed 1
host segmentation_offload 0 timer_hz 250
node id a
node id b
link id ab a 0 b 1 rate_bps 1000000.0 delay_ns 10000000 jitter_ns 0 frame_bytes 0
queue_ab kind droptail limit_packets 50 limit_bytes none
queue_ba kind droptail limit_packets 50 limit_bytes none
loss_ab kind listed flow 1 data_packets 3,9
loss_ba kind none
shaper_ab kind none
shaper_ba kind none
flow id f kind cbr source 0 destination 1 start_ns 0 stop_ns 1000000000 rate_bps 100000.0 \
packet_bytes 500
flow id t kind tcp source 0 destination 1 start_ns 250000000 stop_ns 1000000000 \
connect_ns 250000000 congestion_control newreno recovery classic sack 0 timestamps 0 \
segment_bytes 1000 \
initial_window_segments 2 initial_ssthresh_bytes none maximum_window_bytes none \
delayed_ack_segments 2 delayed_ack_timeout_ns 200000000 minimum_rto_ns 200000000 \
initial_rto_ns 1000000000 clock_granularity_ns 1000000 limited_transmit 0 vegas_alpha_packets 2 \
vegas_beta_packets 4 vegas_gamma_packets 1 cubic_tcp_friendliness 1 cubic_fast_convergence 1 \
cubic_beta 0.8 cubic_hystart 0
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


def test_an_input_file_has_every_default_and_every_route():
    assert input_text(scenario(), NS2) == INPUT.format(sha256=scenario().sha256)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_what_is_left_to_an_engine_is_in_its_plan(engine):
    own = "cubic_beta 0.8 cubic_hystart 0" if engine == NS2 else "cubic_beta 0.7 cubic_hystart 1"
    flow = LINUX_TCP if engine == LINUX else TCP
    left, stated = (
        scenario(flows=[flow | said], links=minimal_scenario()["links"], monitors=[])
        for said in ({}, {"cubic_beta": 0.25})
    )
    assert own in input_text(left, engine)
    assert "cubic_beta 0.25 " in input_text(stated, engine)
    # A scenario without the key is unchanged by its introduction.
    assert '"cubic_beta":0.25' in stated.canonical_json()
    assert "cubic_beta" not in left.canonical_json()


def test_a_later_key_ends_its_line_and_stands_only_where_it_is_set(tmp_path):
    later = {"stop_after_bytes": 9600, "ecn": True}
    given = scenario(flows=[TCP | later], links=minimal_scenario()["links"])
    (tmp_path / INPUT_FILE).write_text(input_text(given, NS2))
    assert " cubic_hystart 0 stop_after_bytes 9600 ecn 1\n" in input_text(given, NS2)
    read = READER.read_input_file(str(tmp_path / INPUT_FILE), "ns2").flows[0]
    assert (read.stop_after_bytes, read.ecn) == (9600, True)
    without = input_text(scenario(), NS2) + scenario().canonical_json()
    assert "stop_after_bytes" not in without and "ecn" not in without


def test_what_a_program_reads_is_what_was_given(tmp_path):
    (tmp_path / INPUT_FILE).write_text(input_text(scenario(), NS2))
    read = READER.read_input_file(str(tmp_path / INPUT_FILE), "ns2")
    assert read.sha256 == scenario().sha256
    assert read.links[0].losses == [DATA.ListedLoss(1, [3, 9]), DATA.NoLoss()]
    assert read.flows[0] == DATA.Cbr("f", 0, 1, 0, 10**9, 1e5, 500)
    assert (read.flows[1].segment_bytes, read.flows[1].sack) == (1000, False)
    assert (read.flows[1].maximum_window_bytes, read.flows[1].stop_ns) == (None, 10**9)
    assert DATA.Routes(read).path(1, 0) == [1] == [monitor.hop for monitor in read.monitors]


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
        (chain(2, links=chain(1).links), "flow f.destination: 'n2' cannot be reached from 'n0'"),
        (chain(1, flows=[END]), "flow f: start_s"),
        (chain(1, duration_s=1e-3, sampling_interval_s=1e-10), "sampling_interval_s: 1e-10"),
    ],
)
def test_what_no_engine_can_run_is_an_error(given, message, tmp_path):
    with pytest.raises(InputError, match=message):
        write_inputs(tmp_path / "run", given, NS3)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("engine", "most"), [(NS3, 250), (NS2, 250), (LINUX, 60)])
def test_a_path_has_as_many_hops_as_its_packets_live(engine, most):
    assert input_text(chain(most), engine).count("\nroute ") == 2 * most
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


DEFAULT = {"segmentation_offload": False, "timer_hz": 250}


@pytest.mark.parametrize("same", [*({"host": h} for h in (None, {}, DEFAULT)), {"duration_s": 1}])
def test_a_default_host_is_no_host_and_a_whole_number_a_float(same):
    given = scenario(**same)
    assert (given, given.id) == (scenario(), scenario().id)
    assert "host" not in json.loads(given.model_dump_json())
    assert NS3.refusal(given) == NS2.refusal(given) == ""


def test_any_other_host_is_part_of_the_identity_and_refused_without_a_kernel():
    bound = {"host": {"segmentation_offload": 8192}, "flows": [LINUX_TCP]}
    bound |= {"links": minimal_scenario()["links"], "monitors": []}
    assert "\nhost segmentation_offload 8192 timer_hz 250\n" in input_text(scenario(**bound), LINUX)
    host = {"segmentation_offload": True, "timer_hz": 100}
    given = scenario(host=host)
    assert given.id != scenario().id
    again = Scenario.model_validate(json.loads(given.canonical_json()))
    assert again == given and again.host.model_dump() == host
    for engine in (NS3, NS2):
        assert engine.refusal(given) == f"{engine.name} has no host setting 'segmentation_offload'"


def test_a_study_sets_the_host_by_its_assumptions():
    changes = {"segmentation_offload": True, **FAST}
    runs = designed("kapadia", "linux", **changes)
    assert {run.scenario.host.segmentation_offload for run in runs} == {True}
    on_ns3 = designed("kapadia", "ns3", **changes)
    assert {run.refusal for run in on_ns3} == {"ns3 has no host setting 'segmentation_offload'"}
    assert "\nhost segmentation_offload 1 timer_hz 1000\n" in input_text(runs[0].scenario, LINUX)
