"""Both set-ups side by side: in counts, on pages and in notebooks, never mixed."""

import re
from dataclasses import replace

import pytest
from replication.metrics.results import Results
from replication.report.notebooks.collection import Collection
from replication.report.notebooks.picture import numbers, verdicts
from replication.report.pages.source import Source
from replication.study.setup import Setup
from replication.study.verdict import ReasonCode, Verdict
from replication.verdicts.evaluate import evaluate_study
from replication.verdicts.summary import both_setups

from tests.unit.conftest import missing_from, numbers_in
from tests.unit.report_project import example


@pytest.fixture(scope="module")
def both(shared_project):
    """A study whose flows are half as fast again under the textbook set-up."""
    project = shared_project
    study = example(project.world)
    project.add(study)
    results = Results.load(project.data, study.id)
    faster = results.flows.assign(throughput_bps=1.5 * results.flows["throughput_bps"])
    textbook = replace(results, flows=faster, memo={}, setup=Setup.TEXTBOOK)
    published = project.root / "data/published/synthetic.csv"
    folder = project.data / "evaluation" / study.id
    evaluate_study(study, published, [results, textbook], folder)
    project.render(study.id)
    return project


def slugs(marks):
    """The verdicts of marks by set-up."""
    return {mark["data-setup"]: mark["class"][-1] for mark in marks}


def test_counts_have_a_row_for_each_setup(both):
    rows = both.rows("counts.csv")
    counted = {
        (row["study"], row["setup"], row["what"]): (row["reproduced"], row["tested"])
        for row in rows
    }
    for study in ("synthetic", ""):
        # One of three is printed as 0.8 Mbit/s. Defaults: 0.8 Mbit/s; textbook: 1.2 Mbit/s.
        assert counted[study, "defaults", "printed"] == ("1", "3")
        assert counted[study, "textbook", "printed"] == ("0", "3")
        # Defaults: at least 0.7 and both parts; textbook: also at least 0.9.
        assert counted[study, "defaults", "claims"] == ("2", "3")
        assert counted[study, "textbook", "claims"] == ("3", "3")


def test_the_first_page_counts_both_setups_side_by_side(both):
    (line,) = both.page("index").select(".matches tr[data-study]")
    shown = {(td["data-what"], td["data-setup"]): td.get_text() for td in line.select("td.num")}
    assert list(shown) == [
        ("printed", "defaults"),
        ("printed", "textbook"),
        ("claims", "defaults"),
        ("claims", "textbook"),
    ]
    assert shown["claims", "defaults"].startswith("2 of 3")
    assert shown["claims", "textbook"].startswith("3 of 3")


def test_the_first_page_answers_the_title_for_both_setups(both):
    answer = " ".join(both.page("index").select_one("h1 + p").get_text().split())
    assert answer.startswith("About half do")
    # Numbers and claims at the defaults and under the textbook set-up.
    shares = re.findall(r"\d of \d", answer)
    assert shares == ["1 of 3", "2 of 3", "0 of 3", "3 of 3"], answer
    # "wrong" fails at the defaults; one of four can never be tested.
    last = answer.rpartition("Of the ")[2]
    judged, hold, defaults_alone, textbook_alone = numbers_in(last)
    assert (judged, hold, defaults_alone, textbook_alone) == (4, 2, 0, 1)


def held_back(claim, code):
    """Return a row of a claim that the set-up decides."""
    return replace(claim, verdict=Verdict.NOT_TESTABLE, reason_code=code)


def test_claims_forced_by_the_defaults_are_counted_with_their_textbook_verdict(both):
    source = Source.load(both.root, both.data)
    defaults, textbook = (source.on_primary(source.claims, setup) for setup in Setup)
    forced = held_back(defaults[0], ReasonCode.SETUP_FORCES_IT)
    alike = held_back(defaults[1], ReasonCode.ALTERNATIVES_CANNOT_DIFFER)
    counts = both_setups([forced, alike, *defaults[2:]], textbook)
    assert (counts.held_back, counts.decided, counts.won) == (2, 2, 2)
    still = [held_back(textbook[0], ReasonCode.SETUP_FORCES_IT), *textbook[1:]]
    counts = both_setups([forced, alike, *defaults[2:]], still)
    assert (counts.held_back, counts.decided, counts.won) == (2, 1, 1)


def test_the_page_of_a_study_has_both_verdicts(both):
    page = both.page("synthetic")
    assert page.select_one("li.setups").get_text() == "DefaultsTextbook set-up"
    wrong = page.find(id="claim-wrong")
    assert slugs(wrong.select(".mark")) == {"defaults": "v-direction", "textbook": "v-reproduced"}
    slow = page.find(id="cell=1~slow~throughput")
    assert slow["data-verdict"] == "reproduced"
    assert slow.select_one(".textbook")["data-verdict"] == "failed"
    evidence = both.page("synthetic~evidence")
    assert "Textbook set-up" in [th.get_text() for th in evidence.select("table th")]
    assert evidence.select_one("#claim-wrong .textbook .badge").get_text() == "reproduced"
    # Each number has one row on the one engine.
    assert len(evidence.select("table[data-sortable] tbody tr[data-column]")) == 3


def test_a_study_with_one_setup_has_no_second_column(project):
    project.add(example(project.world))
    project.render("synthetic")
    for name in ("index", "synthetic", "synthetic~evidence"):
        assert "Textbook" not in project.page(name).get_text()
    answer = project.page("index").select_one("h1 + p").get_text()
    assert re.findall(r"\d of \d", answer) == ["1 of 3", "2 of 3"]


def test_notebooks_show_both_verdicts_and_count_that_of_the_defaults(both):
    collection = Collection(both.root, both.data)
    claims, cells = collection.claims("synthetic"), collection.cells("synthetic")
    assert list(claims["claim"]) == ["value", "wrong", "parts", "open"]
    assert set(claims["setup"]) == {"defaults"}
    assert list(claims["textbook"])[:2] == ["reproduced", "reproduced"]
    assert "Textbook set-up" in verdicts(claims).data
    assert len(cells) == 3 and "Textbook set-up" in numbers(cells).data


def test_points_whose_link_never_fills_are_named(project):
    """Under the textbook set-up the fast points neither drop packets nor queue them."""

    def flows(access, **run):
        return {"packets_dropped": 0.0 if access == "fast" else 1.0}

    study = example(project.world)
    project.add(study, flows=flows, textbook="all")
    project.render(study.id)
    (shown,) = project.page("synthetic").select(".unfilled")
    points = ("3 points", "reno, fast", "vegas, fast", "cubic, fast")
    assert not missing_from(shown.get_text(" ", strip=True), "Textbook", *points)


def test_a_study_that_fills_its_link_has_no_such_warning(project):
    study = example(project.world)
    drops = {"flows": lambda **run: {"packets_dropped": 1.0}}
    project.add(study, textbook="all", **drops)
    project.render(study.id)
    assert not project.page("synthetic").select(".unfilled")
