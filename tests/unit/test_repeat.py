"""Replicates that are one and the same run are warned of."""

import pytest
from replication.plan.config import load_study, load_tier, study_ids
from replication.plan.design import design_study
from replication.plan.repeat import repeat_warnings
from replication.study.study import Study

from tests.unit.conftest import CLAIM, study_document
from tests.unit.test_design import ROOT

PAPER = load_tier(ROOT, "paper")
RED = {
    "kind": "red",
    "limit_packets": 20,
    "minimum_threshold_packets": 5,
    "maximum_threshold_packets": 15,
    "queue_weight": 0.002,
    "maximum_probability": 0.1,
    "mean_packet_bytes": 1000,
}


def warnings(engines=("ns3",), flow=None, link=None):
    document = study_document(claims=[CLAIM])
    experiment = document["experiments"][0]
    for template in experiment["flows"]:
        template.update(flow or {})
    bottleneck = next(x for x in experiment["topology"]["links"] if x["id"] == "bottleneck")
    bottleneck.update(link or {})
    study = Study.model_validate(document)
    return list(repeat_warnings(design_study(study, PAPER, list(engines))))


def test_replicates_that_draw_nothing_are_warned_of_by_experiment():
    (found,) = warnings()
    assert "experiment sweep: at 9 of 9 points all replicates are one and the same run" in found


@pytest.mark.parametrize(
    ("flow", "link"),
    [
        ({"start_jitter_s": 0.1}, None),
        (None, {"jitter_s": 0.001}),
        (None, {"loss_ab": {"kind": "random", "probability": 0.01}}),
        (None, {"queue_ab": RED}),
    ],
)
def test_replicates_that_draw_something_are_not(flow, link):
    assert warnings(flow=flow, link=link) == []


def test_ns2_draws_by_itself():
    assert warnings(engines=["ns2"]) == []


@pytest.mark.parametrize("name", study_ids(ROOT))
def test_the_papers_replicates_differ(name):
    study = load_study(ROOT, name)
    assert list(repeat_warnings(design_study(study, load_tier(ROOT, "quick"), ["ns3"]))) == []
