"""Templates: references, products, repeats, jitter."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from replication.study.scenario import Scenario
from replication.study.study import Experiment
from replication.study.template import (
    TemplateError,
    expand,
    instantiate,
    replicate_seed,
    resolve,
)

from tests.engines.engine_scenarios import droptail, link
from tests.faults.test_inputs import changed


def experiment(**changes):
    queue = droptail(50)
    document = {
        "id": "e",
        "type": "cbr_sweep",
        "title": "t",
        "question": "q",
        "place": "p",
        "factors": [
            {
                "id": "rate",
                "label": "rate",
                "published": {"place": "Table 1"},
                "levels": [{"key": "one", "label": "1", "set": {}}],
            }
        ],
        "topology": {
            "nodes": ["a", "b"],
            "links": [link("ab", "a", "b", "$rate_bps", 0.01, queue_ab=queue, queue_ba=queue)],
        },
        "flows": [
            {
                "id": "cbr{i}",
                "repeat": "$flows",
                "kind": "cbr",
                "source": "a",
                "destination": "b",
                "start_s": 1.0,
                "start_jitter_s": "$jitter_s",
                "rate_bps": "$rate_bps * 0.5",
                "packet_bytes": 1000,
            }
        ],
        "duration_s": 10.0,
        "sampling_interval_s": 1.0,
    }
    return Experiment.model_validate(document | changes)


PARAMETERS = {"rate_bps": 1e6, "flows": 3, "jitter_s": 0.5}


def test_a_reference_follows_references_inside_values():
    parameters = {"queue": {"limit_packets": "$packets"}, "packets": 20}
    assert resolve("$queue", parameters) == {"limit_packets": 20}


def test_products_of_whole_numbers_stay_whole_and_null_stays_null():
    parameters = {"window": 20, "segment": 1000, "none": None}
    assert resolve("$window * $segment", parameters) == 20000
    assert isinstance(resolve("$window * $segment", parameters), int)
    assert resolve("$none * $segment", parameters) is None


def test_sums_are_of_products_and_leave_signs_in_numbers_alone():
    parameters = {"start": 2.5, "flows": 3, "none": None}
    assert resolve("$start + 30", parameters) == 32.5
    assert resolve("$flows * 2 + $start * 1e+1 + -1", parameters) == 30.0
    assert isinstance(resolve("$flows + 1", parameters), int)
    assert resolve("$start + $none * 2", parameters) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$nothing", "unknown parameter $nothing"),
        ("$a", "circular reference: a -> b -> a"),
        ("$text * 2", "is not a number"),
        ("$ok * oops", "neither a number nor"),
        ("$ok + oops", "neither a number nor"),
        ("$ok + $text", "is not a number"),
        ("$ok+1", "neither a number nor"),
        ("pre$ok", "neither a number nor"),
    ],
)
def test_what_does_not_resolve_says_why(text, message):
    parameters = {"a": "$b", "b": "$a", "text": "x", "ok": 1}
    with pytest.raises(TemplateError, match=r".*") as caught:
        resolve(text, parameters)
    assert message in str(caught.value)


def test_repeat_numbers_the_copies():
    assert expand([{"repeat": 2, "id": "n{i}"}, "z"], {}) == ["n1", "n2", "z"]


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "many", 10001])
def test_repeat_must_be_a_sane_count(count):
    with pytest.raises(TemplateError, match="repeat must be a whole number"):
        expand([{"repeat": count, "id": "n{i}"}], {})


def test_flows_start_within_the_jitter_and_differ():
    scenario = instantiate(experiment(), PARAMETERS, seed=7)
    starts = [flow.start_s for flow in scenario.flows]
    assert all(1.0 <= start <= 1.5 for start in starts)
    assert len(set(starts)) == 3
    assert [flow.rate_bps for flow in scenario.flows] == [5e5] * 3


def starts(gap_s, seed=7, **changes):
    flow = experiment().model_dump(mode="json")["flows"][0]
    template = experiment(flows=[{**flow, "start_gap_s": gap_s, **changes}])
    return [f.start_s for f in instantiate(template, PARAMETERS, seed).flows]


def test_copies_start_one_after_the_other_by_draws_of_the_gap():
    drawn = {tuple(starts([0.1, 0.2], seed, start_jitter_s=0.0)) for seed in range(1, 21)}
    assert len(drawn) == 20
    for first, second, third in drawn:
        assert first == 1.0
        assert all(0.1 <= gap <= 0.2 for gap in (second - first, third - second))


def test_a_gap_moves_no_jitter():
    without, moved = starts([0.0, 0.0]), starts([0.5, 0.5])
    late = [b - a for a, b in zip(without, moved, strict=True)]
    assert late == pytest.approx([0.0, 0.5, 1.0])


def test_each_entry_counts_its_own_copies():
    flow = experiment().model_dump(mode="json")["flows"][0] | {"start_jitter_s": 0.0}
    other = flow | {"id": "late{i}", "start_s": 3.0, "start_gap_s": [0.5, 0.5]}
    template = experiment(flows=[flow | {"start_gap_s": [0.2, 0.2]}, other])
    found = [f.start_s for f in instantiate(template, PARAMETERS, 7).flows]
    assert found == pytest.approx([1.0, 1.2, 1.4, 3.0, 3.5, 4.0])


@pytest.mark.parametrize("gap", [[0.2, 0.1], [-0.1, 0.1], 0.1, [0.1], "often"])
def test_a_gap_that_is_no_interval_is_refused_by_name(gap):
    with pytest.raises(TemplateError, match=r"flow cbr1: .*start_gap_s"):
        starts(gap)


def stopping(seed=7, limit_s=None, **changes):
    flow = experiment().model_dump(mode="json")["flows"][0]
    template = experiment(flows=[{**flow, **changes}])
    return instantiate(template, PARAMETERS, seed, limit_s).flows


def test_a_flow_can_stop_so_long_after_the_start_that_it_drew():
    flows = stopping(stop_after_s="$jitter_s * 4 + 1", start_gap_s=[0.2, 0.4])
    assert len({flow.start_s for flow in flows}) == 3
    assert [flow.stop_s - flow.start_s for flow in flows] == pytest.approx([3.0] * 3)
    assert {flow.stop_s for flow in stopping(limit_s=3.5, stop_after_s=3.0)} == {3.5}


def test_a_flow_does_not_stop_twice():
    with pytest.raises(TemplateError, match=r"flow cbr1: .*stop_s and stop_after_s; keep"):
        stopping(stop_s=5.0, stop_after_s=3.0)


def test_a_seed_decides_the_scenario():
    one, again, other = (instantiate(experiment(), PARAMETERS, seed=s) for s in (7, 7, 8))
    assert one.id == again.id
    assert one.id != other.id


def test_a_time_limit_cuts_run_and_flows():
    scenario = instantiate(experiment(), PARAMETERS, seed=7, duration_limit_s=4.0)
    assert scenario.duration_s == 4.0
    assert {flow.stop_s for flow in scenario.flows} == {4.0}


def test_an_invalid_scenario_names_experiment_and_field():
    with pytest.raises(TemplateError, match=r"experiment e: links\.0\.rate_bps"):
        instantiate(experiment(), PARAMETERS | {"rate_bps": -1.0}, seed=7)


def test_replicates_have_their_own_seeds():
    seeds = {replicate_seed("s", "e", r) for r in range(1000)}
    assert len(seeds) == 1000
    assert all(1 <= seed < 2**31 for seed in seeds)


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_a_damaged_flow_template_is_refused_by_name_or_means_what_it_says(data):
    flows = data.draw(changed(experiment().model_dump(mode="json", exclude_none=True)["flows"]))
    try:
        template = experiment(flows=flows)
    except ValidationError as error:
        assert {part["loc"][0] for part in error.errors()} == {"flows"}
        return
    try:
        scenario = instantiate(template, PARAMETERS, seed=1)
    except TemplateError as error:
        assert str(error).startswith("experiment e: ")
    else:
        assert len(scenario.flows) == len(expand(flows, PARAMETERS))
        assert Scenario.model_validate_json(scenario.canonical_json()) == scenario


def test_a_flow_takes_the_parameters_of_the_names_that_it_leaves_out():
    flow = {"id": "c", "kind": "cbr", "source": "a", "destination": "b", "start_s": 2.0}
    values = {"start_s": 1.0, "rate_bps": 5e5, "packet_bytes": 600, "stop_s": "$end_s", "end_s": 8}
    (found,) = instantiate(experiment(flows=[flow]), values, seed=7).flows
    assert (found.start_s, found.rate_bps, found.packet_bytes) == (2.0, 5e5, 600)
    assert found.stop_s == 8
    later = flow | {"stop_after_s": 1.0}
    assert instantiate(experiment(flows=[later]), values, seed=7).flows[0].stop_s == 3.0


@pytest.mark.parametrize("big", [10**400, float("inf"), float("nan"), 1e18])
def test_a_product_beyond_every_quantity_is_refused(big):
    with pytest.raises(TemplateError, match=r"is beyond 1e\+18: no quantity is so large"):
        resolve("$big * 2", {"big": big})
