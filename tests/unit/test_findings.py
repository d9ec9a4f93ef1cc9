"""Findings: each holds on the release, with numbers from the results, and no other appears."""

import json

import pytest
import yaml
from replication.design.config import study_ids
from replication.metrics.results import Results
from replication.report.pages.overview import conclusions
from replication.report.pages.source import Source
from replication.report.release import released_results
from replication.study.claim_model import load_findings
from replication.study.errors import InputError
from replication.study.files import write_text

from tests.unit.conftest import ROOT
from tests.unit.report_project import PROVENANCE, RATES, example, soup


@pytest.fixture(scope="module")
def released():
    return Source.load(ROOT, released_results(ROOT))


@pytest.mark.parametrize("name", study_ids(ROOT))
def test_every_finding_holds_on_the_release_and_names_a_chart(released, name):
    study = released.studies[name]
    said = conclusions(released, study, released.primary_results(Results.load(released.data, name)))
    assert said and not said[0].rests_on, "the first rests on the defaults alone"
    assert all(one.text and "{" not in one.text for one in said), said
    experiments = {one.id for one in study.experiments}
    assert {one.chart.partition("~")[0] for one in said if one.chart} <= experiments


def value(at_least, reduce="minimum"):
    """Return a fact on the throughput of both flows, 0.8 to 0.84 Mbit/s in the example."""
    return {"kind": "value", "of": RATES, "reduce": reduce, "expect": {"at_least": at_least}}


def said(project, *findings):
    project.add(example(project.world))
    project.merge("synthetic")
    path = "configs/studies/synthetic/findings.yaml"
    project.write(path, yaml.safe_dump({"findings": list(findings)}))
    source = Source.load(project.root, project.data)
    results = Results.load(project.data, "synthetic")
    return conclusions(source, source.studies["synthetic"], results)


FIRST = {
    "text": "It carries {rate}, against {printed} printed.",
    "chart": "sweep~throughput_bps",
    "facts": {
        "rate": {"ours": value(7e5)},
        "printed": {"paper": value(1e5) | {"of": {**RATES, "where": {"variant": "reno"}}}},
    },
}


def test_a_finding_has_the_numbers_of_the_results_and_of_the_paper(project):
    (one,) = said(project, FIRST)
    assert one.text == "It carries 0.80\u00a0Mbit/s, against 0.12\u00a0Mbit/s printed."


def test_what_does_not_hold_is_not_concluded_and_what_was_not_run_is_left_out(project):
    wrong = FIRST | {"facts": FIRST["facts"] | {"more": {"ours": value(9e5)}}}
    border = {"region": "any", "engine": "ns3", "at": 0.2, "gives": "to"}
    unmapped = {"text": "Up to {n} BDP.", "facts": {"n": border}}
    assert [one.text for one in said(project, wrong, unmapped)] == [""]
    project.provenance = PROVENANCE | {"tier": {"id": "quick", "levels": "quick"}}
    out = project.render("synthetic")
    for name in ("index", "synthetic"):
        text = soup(out / f"{name}.html").select_one(".conclusion").get_text()
        assert text == "Not concluded from these results (tier quick)."
    write_text(project.data / "regions/any/ns3.json", json.dumps(region(claim_holds_to=1.0)))
    found = said(project, FIRST, unmapped)
    assert (found[1].text, bool(found[1].rests_on)) == ("Up to 1.0 BDP.", True)
    # Without a border the finding is not concluded.
    write_text(project.data / "regions/any/ns3.json", json.dumps(region(claim_holds_to=20.0)))
    assert said(project, FIRST, unmapped)[1].text == ""


def region(claim_holds_to):
    """Return a result of which the claim holds below a buffer, at every delay."""
    buffers = [0.1 * 100 ** ((cell + 0.5) / 8) for cell in range(8)]
    panel = {
        "panel": [],
        "quantity": [[claim_holds_to / x for x in buffers]] * 8,
        "probability": [[float(x < claim_holds_to) for x in buffers]] * 8,
        "paper": None,
    }
    buffer = {"id": "b", "title": "Buffer", "unit": "BDP", "low": 0.1, "high": 10, "log": True}
    delay = {"id": "d", "title": "Delay", "unit": "s", "low": 0, "high": 0.4, "log": False}
    return {
        "region": "any",
        "engine": "ns3",
        "axes": [buffer, delay],
        "panels": [panel],
        "points": [],
        "validation": [],
    }


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"text": "It is {other}."}, "fact: 'other' is unknown"),
        ({"facts": {"rate": {"ours": value(1), "region": "any"}}}, "give exactly one of"),
        ({"chart": None}, "must rest on the defaults alone and name a chart"),
    ],
)
def test_a_wrong_finding_is_named(tmp_path, change, named):
    path = tmp_path / "configs/studies/s/findings.yaml"
    write_text(path, yaml.safe_dump({"findings": [FIRST | change]}))
    with pytest.raises(InputError, match=named):
        load_findings(tmp_path, "s")
