"""Drawings of topologies: senders left, receivers right, the watched queue named, nothing lost."""

import json
from pathlib import Path

import pytest
from replication.report.pages.topology import draw
from replication.report.released import released_results

SCENARIOS = released_results(Path(__file__).parents[2]) / "design" / "scenarios"
STUDIES = sorted(path.stem for path in SCENARIOS.glob("*.json"))


def scenarios(study):
    return json.loads((SCENARIOS / f"{study}.json").read_text())


def place(view, name):
    return next(one for one in view.places if one.name == name)


@pytest.mark.parametrize("study", STUDIES)
def test_every_node_stands_once_and_flows_go_to_the_right(study):
    for scenario in scenarios(study).values():
        view = draw(scenario)
        spots = [(one.x, one.y) for one in view.places]
        assert len(spots) == len(set(spots))
        counted = [one.name.rpartition("(")[2].rstrip(")") for one in view.places]
        nodes = sum(int(n) if n.isdigit() else 1 for n in counted)
        assert nodes == len(scenario["nodes"])
        x = {one.name.partition(" ")[0]: one.x for one in view.places}
        for flow in scenario["flows"]:
            if flow["source"] in x and flow["destination"] in x:
                assert x[flow["source"]] < x[flow["destination"]]
        assert all(wire.x1 < wire.x2 for wire in view.wires)
        (watched,) = [wire for wire in view.wires if wire.is_bottleneck]
        assert watched.queue and watched.queue in view.words


def test_links_and_queues_have_the_scenarios_numbers():
    scenario = next(iter(scenarios("nishitha").values()))
    (wire,) = [one for one in draw(scenario).wires if one.is_bottleneck]
    assert wire.label == "2 Mbit/s, 50 ms" and wire.queue == "DropTail, 49 packets"
    bottleneck = next(link for link in scenario["links"] if link["id"] == "bottleneck")
    bottleneck |= {"rate_bps": 64000.0, "delay_s": 2e-5}
    bottleneck["queue_ab"] = {"kind": "codel", "limit_packets": 1000}
    (wire,) = [one for one in draw(scenario).wires if one.is_bottleneck]
    assert wire.label == "64 kbit/s, 20 µs" and wire.queue == "CoDel, 1,000 packets"


def test_like_hosts_are_drawn_once_and_unlike_ones_apart():
    scenario = max(scenarios("saxena").values(), key=lambda one: len(one["nodes"]))
    view = draw(scenario)
    assert len(view.places) == 4 and len(view.wires) == 3
    scenario["links"][0]["delay_s"] *= 2
    assert len(draw(scenario).places) == 5
