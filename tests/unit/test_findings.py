"""Findings: each holds on the release, with numbers from the results, and no other appears."""

from dataclasses import asdict, replace

import pytest
import yaml
from replication.explore.machine import write_json
from replication.metrics.results import Results
from replication.report.charts.figure import Figure
from replication.report.pages.conclusions import conclusions
from replication.report.pages.source import Source
from replication.report.release import released_results
from replication.study.errors import InputError
from replication.study.files import write_text
from replication.study.finding_model import load_findings
from replication.study.setup import Setup
from replication.verdicts.evaluate import evaluate_study

from tests.unit.conftest import RELEASED_STUDIES, ROOT
from tests.unit.region_example import BUFFER, PANEL, RESULT
from tests.unit.report_project import RATES, example, soup


@pytest.fixture(scope="module")
def released():
    return Source.load(ROOT, released_results(ROOT))


@pytest.mark.parametrize("name", RELEASED_STUDIES)
def test_every_finding_holds_on_the_release_and_names_a_chart(released, name):
    study = released.studies[name]
    ran = Results.load_each(released.data, name)
    said = conclusions(released, study, {one.setup: released.primary_results(one) for one in ran})
    assert not said.unsupported and len(said.shown) == len(load_findings(ROOT, name))
    statements = statements_of(said)
    assert not statements[0].is_region, "the first rests on the defaults alone"
    assert all("{" not in one.text and one.runs for one in statements)
    experiments = {one.id for one in study.experiments}
    assert {one.chart.partition("~")[0] for one in said.shown if one.chart} <= experiments
    assert said.shown[0].headline and "{" not in said.shown[0].headline


def value(at_least, reduce="minimum"):
    """Return a fact on the throughput of both flows, 0.8 to 0.84 Mbit/s in the example."""
    return {"kind": "value", "of": RATES, "reduce": reduce, "expect": {"at_least": at_least}}


def said(project, *findings, textbook=None):
    """Return the conclusions on the example, whose flows are `textbook` times as fast under it."""
    study = example(project.world)
    project.add(study)
    results = Results.load(project.data, "synthetic")
    ran = {Setup.DEFAULTS: results}
    if textbook:
        faster = results.flows.assign(throughput_bps=textbook * results.flows["throughput_bps"])
        ran[Setup.TEXTBOOK] = replace(results, flows=faster, memo={}, setup=Setup.TEXTBOOK)
        published = project.root / "data/published/synthetic.csv"
        evaluate_study(study, published, ran.values(), project.data / "evaluation/synthetic")
    project.merge("synthetic")
    path = "configs/studies/synthetic/findings.yaml"
    project.write(path, yaml.safe_dump({"findings": list(findings)}))
    source = Source.load(project.root, project.data)
    return conclusions(source, source.studies["synthetic"], ran)


def statements_of(conclusions):
    statements = []
    for finding in conclusions.shown:
        statements += finding.statements
    return statements


def texts(conclusions):
    return [statement.text for statement in statements_of(conclusions)]


FIRST = {
    "text": "It carries {rate}, against {printed} printed.",
    "chart": "sweep~throughput_bps",
    "facts": {
        "rate": {"ours": value(7e5)},
        "printed": {"paper": value(1e5) | {"of": {**RATES, "where": {"variant": "reno"}}}},
    },
}


def test_a_finding_has_the_numbers_of_the_results_and_of_the_paper(project):
    found = said(project, FIRST)
    (one,) = found.shown[0].statements
    assert one.text == "It carries 0.80\u00a0Mbit/s, against 0.12\u00a0Mbit/s printed."
    # Every run of the sweep; a fact on one level has fewer.
    runs = Results.load(project.data, "synthetic").design["scenario"].nunique()
    assert one.runs == runs
    slow = {**RATES, "where": {"access": "slow"}}
    narrow = {"text": "{rate}", "facts": {"rate": {"ours": value(1) | {"of": slow}}}}
    statements = statements_of(said(project, FIRST, narrow))
    assert 0 < statements[1].runs < runs


def test_each_setup_has_its_statement_with_its_own_numbers(project):
    second = {"text": "Then {rate}.", "facts": {"rate": {"ours": value(1e6)}}}
    both = FIRST | {"textbook": second}
    found = said(project, both, textbook=1.5)
    assert texts(found)[1] == "Then 1.2\u00a0Mbit/s."
    setups = [one.setup for one in found.shown[0].statements]
    assert setups == [Setup.DEFAULTS, Setup.TEXTBOOK]
    # Its condition fails at the same speed, and it is left out without its runs.
    slow = said(project, both, textbook=1.0)
    assert len(texts(slow)) == 1 and (slow.unsupported, slow.without_runs) == (1, 0)
    alone = said(project, both)
    assert alone.shown[0].statements[0].setup is None, "there is no other to be told from"
    assert len(texts(alone)) == 1 and (alone.unsupported, alone.without_runs) == (0, 1)


def test_the_chart_of_a_finding_has_its_headline_as_title(project):
    name = "synthetic~sweep~throughput_bps"
    figure = Figure(name, "Sweep: throughput", {}, "Rates.", frozenset())
    headline = {"headline": "Each flow carries {rate}"}
    titled = said(project, FIRST | headline).titled(figure)
    assert titled.title == "Each flow carries 0.80\u00a0Mbit/s"
    assert titled.description == "Sweep: throughput. Rates."
    assert said(project, FIRST).titled(figure) == figure
    # The runs of the textbook set-up are not drawn, and what does not hold is no title.
    wrong = {"facts": FIRST["facts"] | {"more": {"ours": value(9e5)}}}
    second = {"text": "Then {rate}.", "facts": {"rate": {"ours": value(1e6)}}}
    for finding in (FIRST | headline | wrong, FIRST | headline | wrong | {"textbook": second}):
        assert said(project, finding, textbook=1.5).titled(figure) == figure


def test_a_statement_about_a_level_that_was_not_run_is_left_out(project):
    wide = {**RATES, "where": {"access": ["slow", "gone"]}}
    named = {"text": "{rate}", "facts": {"rate": {"ours": value(1) | {"of": wide}}}}
    found = said(project, FIRST, named)
    assert len(texts(found)) == 1 and found.without_runs == 1


def test_statements_that_fail_or_lack_runs_are_counted_and_not_shown(project):
    wrong = FIRST | {"facts": FIRST["facts"] | {"more": {"ours": value(9e5)}}}
    border = {"region": "any", "engine": "ns3", "at": 0.2, "gives": "to"}
    unmapped = {"text": "Up to {n} BDP.", "facts": {"n": border}}
    found = said(project, wrong, unmapped, wrong)
    assert texts(found) == [] and (found.unsupported, found.without_runs) == (2, 1)
    out = project.render("synthetic")
    for name in ("index", "synthetic"):
        (told,) = soup(out / f"{name}.html").select(".conclusion")
        words = (
            "2 statements do not hold in these results. "
            "1 statement needs runs that these results lack."
        )
        assert told.get_text() == words
    write_region(project, claim_holds_to=1.0)
    found = said(project, FIRST, unmapped)
    (one,) = found.shown[1].statements
    assert (one.text, one.is_region, one.runs) == ("Up to 1.0 BDP.", True, 7)
    deep = unmapped | {"facts": {"n": border | {"gives": "beyond"}}}
    assert texts(said(project, FIRST, deep))[1] == "Up to 45 BDP."
    # Without a border the finding is not concluded.
    write_region(project, claim_holds_to=20.0)
    assert said(project, FIRST, unmapped).unsupported == 1


def write_region(project, claim_holds_to):
    """Write a result of which the claim holds below a buffer, at every delay."""
    buffers = [0.1 * 100 ** ((cell + 0.5) / 8) for cell in range(8)]
    panel = replace(
        PANEL,
        panel=[],
        quantity=[[claim_holds_to / x for x in buffers]] * 8,
        probability=[[float(x < claim_holds_to) for x in buffers]] * 8,
        runs=7,
    )
    axes = replace(BUFFER, paper=450.0), RESULT.axes[1]
    result = replace(RESULT, region="any", axes=axes, panels=[panel])
    write_json(project.data / "regions/any/ns3.json", asdict(result))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"text": "It is {other}."}, "fact: 'other' is unknown"),
        ({"facts": {"rate": {"ours": value(1), "region": "any"}}}, "give exactly one of"),
        ({"headline": "It is {other}."}, "fact: 'other' is unknown"),
        ({"headline": "Fast.", "chart": None}, "name the `chart` that it is the title of"),
        ({"chart": None}, "must rest on the defaults alone and name a chart"),
    ],
)
def test_an_invalid_finding_is_refused_by_its_field(tmp_path, change, named):
    path = tmp_path / "configs/studies/s/findings.yaml"
    write_text(path, yaml.safe_dump({"findings": [FIRST | change]}))
    with pytest.raises(InputError, match=named):
        load_findings(tmp_path, "s")
