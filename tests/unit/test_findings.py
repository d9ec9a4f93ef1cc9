"""Findings: each holds on the release, with numbers from the results, and no other appears."""

from dataclasses import asdict, replace

import pytest
import yaml
from replication.base.errors import InputError
from replication.base.files import write_text
from replication.explore.machine import write_json
from replication.metrics.results import Results
from replication.report.charts.figure import Figure
from replication.report.pages.conclusions import conclusions
from replication.report.pages.source import Source
from replication.report.release import released_results
from replication.study.finding_model import load_findings
from replication.study.setup import Setup
from replication.verdicts.evaluate import evaluate_study

from tests.unit.conftest import RELEASED_STUDIES, ROOT, numbers_in
from tests.unit.region_example import BUFFER, PANEL, RESULT
from tests.unit.report_project import RATES, example, soup


@pytest.fixture(scope="module")
def released():
    return Source.load(ROOT, released_results(ROOT))


@pytest.mark.parametrize("name", RELEASED_STUDIES)
def test_every_finding_holds_on_the_release_and_names_a_chart(released, name):
    study = released.studies[name]
    ran = Results.load_each(released.data, name)
    results = {loaded.setup: released.primary_results(loaded) for loaded in ran}
    concluded = conclusions(released, study, results)
    assert not concluded.unsupported and len(concluded.shown) == len(load_findings(ROOT, name))
    statements = statements_of(concluded)
    assert not statements[0].is_region, "the first rests on the defaults alone"
    assert all("{" not in statement.text and statement.runs for statement in statements)
    experiments = {experiment.id for experiment in study.experiments}
    charts = [finding.chart for finding in concluded.shown if finding.chart]
    assert {chart.partition("~")[0] for chart in charts} <= experiments
    assert concluded.shown[0].headline and "{" not in concluded.shown[0].headline


def value(at_least, reduce="minimum"):
    """Return a fact on the throughput of both flows, 0.8 to 0.84 Mbit/s in the example."""
    return {"kind": "value", "of": RATES, "reduce": reduce, "expect": {"at_least": at_least}}


def concluded_from(project, *findings, textbook=None):
    """Return the conclusions on the example, whose flows are `textbook` times as fast under it."""
    study = example(project.world)
    folder = project.data / "evaluation/synthetic"
    if not folder.exists():
        project.add(study)
    results = Results.load(project.data, "synthetic")
    ran = {Setup.DEFAULTS: results}
    if textbook:
        faster = results.flows.assign(throughput_bps=textbook * results.flows["throughput_bps"])
        ran[Setup.TEXTBOOK] = replace(results, flows=faster, memo={}, setup=Setup.TEXTBOOK)
    evaluate_study(study, project.root / "data/published/synthetic.csv", ran.values(), folder)
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
    (statement,) = concluded_from(project, FIRST).shown[0].statements
    numbers = {"rate": "0.80\u00a0Mbit/s", "printed": "0.12\u00a0Mbit/s"}
    assert statement.text == FIRST["text"].format(**numbers)
    # Every run of the sweep; a fact on one level has fewer.
    runs = Results.load(project.data, "synthetic").design["scenario"].nunique()
    assert statement.runs == runs
    slow = {**RATES, "where": {"access": "slow"}}
    narrow = {"text": "{rate}", "facts": {"rate": {"ours": value(1) | {"of": slow}}}}
    statements = statements_of(concluded_from(project, FIRST, narrow))
    assert 0 < statements[1].runs < runs


def test_each_setup_has_its_statement_with_its_own_numbers(project):
    second = {"text": "Then {rate}.", "facts": {"rate": {"ours": value(1e6)}}}
    both = FIRST | {"textbook": second}
    fast = concluded_from(project, both, textbook=1.5)
    assert texts(fast)[1] == "Then 1.2\u00a0Mbit/s."
    setups = [statement.setup for statement in fast.shown[0].statements]
    assert setups == [Setup.DEFAULTS, Setup.TEXTBOOK]
    # Its condition fails at the same speed, and it is left out without its runs.
    slow = concluded_from(project, both, textbook=1.0)
    assert len(texts(slow)) == 1 and (slow.unsupported, slow.without_runs) == (1, 0)
    alone = concluded_from(project, both)
    assert alone.shown[0].statements[0].setup is None, "there is no other to be told from"
    assert len(texts(alone)) == 1 and (alone.unsupported, alone.without_runs) == (0, 1)


def test_the_chart_of_a_finding_has_its_headline_as_title(project):
    name = "synthetic~sweep~throughput_bps"
    figure = Figure(name, "Sweep: throughput", {}, "Rates.", frozenset())
    headline = {"headline": "Each flow carries {rate}"}
    titled = concluded_from(project, FIRST | headline).titled(figure)
    assert titled.title == headline["headline"].format(rate="0.80\u00a0Mbit/s")
    assert titled.description == f"{figure.title}. {figure.description}"
    assert concluded_from(project, FIRST).titled(figure) == figure
    # The runs of the textbook set-up are not drawn, and what does not hold is no title.
    wrong = {"facts": FIRST["facts"] | {"more": {"ours": value(9e5)}}}
    second = {"text": "Then {rate}.", "facts": {"rate": {"ours": value(1e6)}}}
    for finding in (FIRST | headline | wrong, FIRST | headline | wrong | {"textbook": second}):
        assert concluded_from(project, finding, textbook=1.5).titled(figure) == figure


def test_a_statement_about_a_level_that_was_not_run_is_left_out(project):
    wide = {**RATES, "where": {"access": ["slow", "gone"]}}
    named = {"text": "{rate}", "facts": {"rate": {"ours": value(1) | {"of": wide}}}}
    concluded = concluded_from(project, FIRST, named)
    assert len(texts(concluded)) == 1 and concluded.without_runs == 1


def test_statements_that_fail_or_lack_runs_are_counted_and_not_shown(project):
    wrong = FIRST | {"facts": FIRST["facts"] | {"more": {"ours": value(9e5)}}}
    concluded = concluded_from(project, wrong, UNMAPPED, wrong)
    assert texts(concluded) == [] and (concluded.unsupported, concluded.without_runs) == (2, 1)
    out = project.render("synthetic")
    for name in ("index", "synthetic"):
        (sentence,) = soup(out / f"{name}.html").select(".conclusion")
        assert numbers_in(sentence.get_text()) == [2, 1]


#: Up to which buffer a region holds; there is no such region.
BOUNDARY = {"region": "any", "engine": "ns3", "at": 0.2, "gives": "to"}
UNMAPPED = {"text": "Up to {n} BDP.", "facts": {"n": BOUNDARY}}


def test_a_finding_on_a_region_has_its_boundary(project):
    write_region(project, claim_holds_to=1.0)
    (statement,) = concluded_from(project, FIRST, UNMAPPED).shown[1].statements
    assert statement.text == UNMAPPED["text"].format(n="1.0")
    assert (statement.is_region, statement.runs) == (True, 7)
    deep = UNMAPPED | {"facts": {"n": BOUNDARY | {"gives": "beyond"}}}
    assert texts(concluded_from(project, FIRST, deep))[1] == UNMAPPED["text"].format(n="45")
    # Without a boundary the finding is not concluded.
    write_region(project, claim_holds_to=20.0)
    assert concluded_from(project, FIRST, UNMAPPED).unsupported == 1


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
        ({"text": "It is {other}."}, "fact: 'other'"),
        ({"facts": {"rate": {"ours": value(1), "region": "any"}}}, "facts.rate"),
        ({"headline": "It is {other}."}, "fact: 'other'"),
        ({"headline": "Fast.", "chart": None}, "headline.*`chart`"),
        ({"chart": None}, "chart"),
    ],
)
def test_an_invalid_finding_is_refused_by_its_field(tmp_path, change, named):
    path = tmp_path / "configs/studies/s/findings.yaml"
    write_text(path, yaml.safe_dump({"findings": [FIRST | change]}))
    with pytest.raises(InputError, match=named):
        load_findings(tmp_path, "s")
