"""Templates: references, products, repeats, jitter."""

import re

import pytest
from measurements.scenarios import droptail, link
from replication.base.model import REFERENCE
from replication.study.study import Experiment
from replication.study.template import TemplateError, instantiate, replicate_seed, resolve


def experiment(**changes):
    queue = droptail(50)
    wire = link("ab", "a", "b", "$rate_bps", 0.01, queue_ab=queue, queue_ba=queue)
    factor = {"id": "rate", "label": "rate", "published": {"place": "Table 1"}}
    flow = {"id": "cbr{i}", "repeat": "$flows", "kind": "cbr", "source": "a", "destination": "b"}
    flow |= {"start_s": 1.0, "start_jitter_s": "$jitter_s"}
    flow |= {"rate_bps": "$rate_bps * 0.5", "packet_bytes": 1000}
    document = {
        "id": "e",
        "type": "cbr_sweep",
        "title": "t",
        "question": "q",
        "place": "p",
        "factors": [factor | {"levels": [{"key": "one", "label": "1", "set": {}}]}],
        "topology": {"nodes": ["a", "b"], "links": [wire]},
        "flows": [flow],
        "duration_s": 10.0,
        "sampling_interval_s": 1.0,
    }
    return Experiment.model_validate(document | changes)


PARAMETERS = {"rate_bps": 1e6, "flows": 3, "jitter_s": 0.5}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("$queue", {"limit_packets": 20}),
        ("$packets * $segment", 20000),
        ("$none * $segment", None),
        ("$start + 30", 32.5),
        ("$packets * 2 + $start * 1e+1 + -1", 64.0),
        (["a", {"k": "$start"}], ["a", {"k": 2.5}]),
    ],
)
def test_references_products_and_sums_resolve(value, expected):
    parameters = {"queue": {"limit_packets": "$packets"}, "packets": 20, "segment": 1000}
    resolved = resolve(value, parameters | {"start": 2.5, "none": None})
    assert resolved == expected and type(resolved) is type(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$large * 2.5", "too large"),
        ("$nothing", "unknown parameter $nothing"),
        ("$a", "a -> b -> a"),
        ("$text * 2", "not a number"),
        ("$ok + oops", "oops"),
        ("pre$ok", "pre$ok"),
    ],
)
def test_an_unresolved_reference_is_an_error_with_its_reason(text, message):
    parameters = {"a": "$b", "b": "$a", "text": "x", "ok": 1, "large": 10**400}
    with pytest.raises(TemplateError, match=re.escape(message)):
        resolve(text, parameters)


def test_replicates_have_their_own_seeds():
    seeds = {replicate_seed("s", "e", r) for r in range(1000)}
    assert len(seeds) == 1000
    assert all(1 <= seed < 2**31 for seed in seeds)


def test_a_missing_key_of_a_flow_takes_the_parameter_of_its_name():
    flow = {"id": "c", "kind": "cbr", "source": "a", "destination": "b", "start_s": 2.0}
    values = {"start_s": 1.0, "rate_bps": 5e5, "packet_bytes": 600, "stop_s": "$end_s", "end_s": 8}
    (cbr,) = instantiate(experiment(flows=[flow]), values, seed=7).flows
    assert (cbr.start_s, cbr.rate_bps, cbr.packet_bytes) == (2.0, 5e5, 600)
    assert cbr.stop_s == 8


def flows(*entries, seed=7, limit_s=None, **changes):
    """Return the flows of the changed template and of `entries`, which change it further."""
    flow = experiment().model_dump(mode="json")["flows"][0] | changes
    template = experiment(flows=[flow | entry for entry in entries or ({},)])
    return instantiate(template, PARAMETERS, seed, limit_s).flows


def starts(*entries, **changes):
    return [flow.start_s for flow in flows(*entries, **changes)]


def test_flows_start_within_the_jitter_and_differ_by_seed():
    assert all(1.0 <= start <= 1.5 for start in starts())
    assert len(set(starts())) == 3 and starts() == starts() != starts(seed=8)
    assert [flow.rate_bps for flow in flows()] == [5e5] * 3


def test_copies_start_after_drawn_gaps_that_leave_jitter_unchanged():
    gap = {"start_gap_s": [0.1, 0.2], "start_jitter_s": 0.0}
    drawn = {tuple(starts(seed=seed, **gap)) for seed in range(1, 21)}
    assert len(drawn) == 20
    for first, second, third in drawn:
        assert first == 1.0
        assert all(0.1 <= gap <= 0.2 for gap in (second - first, third - second))
    pairs = zip(starts(start_gap_s=[0.0, 0.0]), starts(start_gap_s=[0.5, 0.5]), strict=True)
    assert [late - early for early, late in pairs] == pytest.approx([0.0, 0.5, 1.0])
    # Each entry counts its own copies.
    other = {"id": "late{i}", "start_s": 3.0, "start_gap_s": [0.5, 0.5]}
    starts_s = starts({"start_gap_s": [0.2, 0.2]}, other, start_jitter_s=0.0)
    assert starts_s == pytest.approx([1.0, 1.2, 1.4, 3.0, 3.5, 4.0])


def test_a_flow_stops_no_later_than_the_end_of_the_run():
    assert {flow.stop_s for flow in flows(limit_s=3.5)} == {3.5}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start_gap_s": [0.2, 0.1]}, "flow cbr1: .*start_gap_s"),
        ({"start_gap_s": [-0.1, 0.1]}, "flow cbr1: .*start_gap_s"),
        ({"start_gap_s": "often"}, "flow cbr1: .*start_gap_s"),
        ({"rate_bps": -1.0}, r"experiment e: flows\.cbr1\.rate_bps"),
    ],
)
def test_an_invalid_time_or_rate_is_refused_by_its_flow(changes, message):
    with pytest.raises(TemplateError, match=message):
        flows(**changes)


def test_an_unknown_key_is_refused_by_its_link_or_flow_with_the_nearest_key():
    wire = link("ab", "a", "b", 1e6, 0.01, queue_ab=droptail(9) | {"limits_bytes": 9})
    flow = {"id": "c", "kind": "cbr", "source": "a", "destination": "b", "start_s": 0, "ecn": True}
    slip = rf"links\.ab\.queue_ab\.limits_bytes: .*nearest: limit_bytes;.*{REFERENCE}"
    with pytest.raises(TemplateError, match=slip) as caught:
        topology = {"nodes": ["a", "b"], "links": [wire]}
        instantiate(experiment(topology=topology, flows=[flow]), PARAMETERS, seed=7)
    assert re.search(rf"flows\.c\.ecn: .*{REFERENCE}", str(caught.value))
