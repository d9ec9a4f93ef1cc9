"""The section Why shows the search's result, and hides one of other input files."""

import json
import re

import pytest
from replication.base.files import write_text
from replication.base.table import write_table
from replication.design.config import load_study
from replication.engines.catalogue import ENGINES
from replication.explore.cause import load_explanations
from replication.explore.explained import EXPLANATIONS
from replication.explore.explanation import NAME, sources
from replication.explore.robustness import TABLES
from replication.report.pages import evidence
from replication.report.pages.evidence import explanation_of, number_of, varied_claims
from replication.report.pages.source import Source

from tests.unit.conftest import ROOT, missing_from, numbers_in
from tests.unit.report_project import PROVENANCE, example, soup

EXPLAINED = EXPLANATIONS["explained_cells"]
SHARE = {"cells": 2, "before": 0, "after": 2, "error_before": 0.5, "error_after": 0.04}
NOTHING = {"cells": 0, "before": 0, "after": 0, "error_before": None, "error_after": None}
ADDED = {"added": "2026-11-22", "results_seen": "after", "suggested_by": "document"}
BROKEN = {"claim": "value", "quote": "Both fill the link", "statistic": "Throughput", "at": "5 ms"}
CAUSE = {"reason": "r", "source": "s", "outside_ledger": ""}
WORTH = {"cause": "queue", "level": "5", "bits": 12.5, "matches": 1}
#: How many configurations of how many causes were tried.
SEARCHED = r"\b17 \w+ of 2 possible"
SLIP = {"plausibility": "possible slip", "evidence": "Table I has 9 <b>packets</b>."}


def document(project, **changes):
    """The search's result; its text contains a tag, which pages must escape."""
    first = CAUSE | SLIP | WORTH | ADDED | {"title": "Queues of <b>five</b>"}
    before = {"value": "not reproduced", "open": "not testable"}
    return {
        "study": "synthetic",
        "engine": "ns3",
        "score": "cells",
        "result": "best guess",
        "explanation": "best",
        "bits": 4.3,
        "reasons": ["It does not hold."],
        "causes": [first],
        "coupled": "",
        "others": [],
        "null_p": 0.005,
        "permutations": 200,
        "gain_bits": 20.0,
        "not_compared": 0,
        "seen": SHARE,
        "held_out": SHARE | {"cells": 1, "after": 0},
        "repeated": NOTHING,
        "contradicts": [],
        "suggested_by": ["document"],
        "broken": [BROKEN | {"measured": "0.87", "published": "1.3"}],
        "impossible": {"before": ["a", "b", "c"], "after": ["1 slow 9 Mbit/s are too many."]},
        "claims_before": before,
        "claims_after": before | {"value": "reproduced"},
        "causes_tried": ["queue", "window"],
        "causes_untried": ["loss"],
        "configurations_tried": 17,
        "cpu_minutes": 1.0,
        "budget_minutes": 2.0,
        "untestable": {"on_off": "No such source."},
        "equally_good": [{"causes": [["window", "9"]], "worse_by_bits": 1.0}],
        "input_hashes": sources(project.root, "synthetic", ENGINES["ns3"]),
    } | changes


def cell(row, matches, used):
    text = dict.fromkeys(EXPLAINED, "x") | {"table": "1", "row": row, "published": 2.0}
    measured = {"engine": "ns3", "reproduced_mean": 1.0}
    return text | measured | {"matches": matches, "used_in_search": used}


@pytest.fixture
def project(project):
    project.add(example(project.world))
    project.link_engines()
    project.write("configs/sensitivity.yaml", (ROOT / "configs/sensitivity.yaml").read_text())
    folder = project.data / "sensitivity/synthetic"
    rows = [cell("slow", True, True), cell("mid", True, True), cell("fast", False, False)]
    write_table(folder / "explained_cells.csv", rows, EXPLAINED)
    write_text(folder / NAME, json.dumps(document(project)))
    return project


def explained(project):
    return explanation_of(project.root, project.data, load_study(project.root, "synthetic"))


def section(project, **changes):
    """Return the section and the page's text about an explanation with changes."""
    if changes:
        path = project.data / "sensitivity/synthetic" / NAME
        write_text(path, json.dumps(document(project, **changes)))
    page = soup(project.render("synthetic") / "synthetic~evidence.html")
    part = page.find("h2", id="why").parent
    return part, " ".join(part.get_text().split())


def test_the_section_shows_the_broken_claim_the_matches_and_the_held_out_numbers(project):
    part, words = section(project)
    (broken,) = document(project)["broken"]
    facts = (
        "0 to 2 of 3",
        "Queues of <b>five</b>",
        "It does not hold.",
        "1 other combination",
        "1 in Table 1",
        "1 slow 9 Mbit/s are too many.",
        SLIP["evidence"],
        "2026-11-22",
        "queue, window",
        "No such source.",
    )
    assert not missing_from(words, *broken_facts(broken), *facts)
    # In the sentence and where what was searched is listed.
    assert re.search(SEARCHED, words) and words.count("17 configurations") == 2
    # Impossible numbers before and under the explanation.
    assert re.search(r"\b3 as the paper .*\b1 under", words)
    assert not part.find("b") and not part.find("figure")
    gains = [row.get_text(" ", strip=True) for row in part.find("table").select("tbody tr")]
    assert [numbers_in(row) for row in gains] == [[2, 0, 2, 50, 4], [1, 0, 0, 50, 4]]
    short = soup(project.out / "synthetic.html").find("h2", id="best")
    assert "guess" in short.get_text()
    assert not missing_from(short.parent.get_text(), *broken_facts(broken))


def broken_facts(broken):
    """What a page must tell of a broken claim."""
    return [broken[key] for key in ("quote", "statistic", "at", "measured", "published")]


def first_page(project, **changes):
    """Return what the first page says of explanations."""
    section(project, **changes)
    page = soup(project.out / "index.html")
    return " ".join(page.find(id="explanations").parent.get_text().split())


def test_the_first_page_states_the_result_of_the_search_without_causes(project):
    for result, words in (
        ("explanation", "An explanation"),
        ("best guess", "A best guess"),
        ("none found", "Nothing"),
    ):
        text = first_page(project, result=result, reasons=[])
        assert words in text and text.count("is found for") == 1
        titles = [cause["title"] for cause in document(project)["causes"]]
        assert titles and not any(title in text for title in titles)


def test_equally_good_explanations_are_listed_and_causes_from_a_specification_are_marked(project):
    ties = [{"causes": [["window", "9"], ["queue", "3"]], "worse_by_bits": 0.8}]
    part, words = section(project, equally_good=ties)
    (tie,) = part.find("h3", string=re.compile("equally")).find_next("ul").select("li")
    assert not missing_from(tie.get_text(), "window", "queue", "0.8 bits")
    assert "independent evidence" not in words
    _, words = section(project, suggested_by=["document", "specification of the search"])
    assert "independent evidence" in words


def test_a_claim_lost_under_the_explanation_is_shown(project):
    verdicts = {
        "claims_before": {"parts": "reproduced"},
        "claims_after": {"parts": "direction only"},
    }
    _, words = section(project, broken=[], **verdicts)
    assert "It loses" in words
    verdicts["claims_after"] = verdicts["claims_before"]
    _, words = section(project, **verdicts)
    assert "It loses" not in words


def test_other_explanations_are_mentioned_only_if_found_or_not_compared(project):
    _, words = section(project, equally_good=[])
    assert "equally well" not in words
    _, words = section(project, equally_good=[], not_compared=2)
    assert "2 further combinations" in words


def test_two_explanations_are_compared_with_what_each_contradicts(project):
    second = document(project, gain_bits=14.0, coupled="Rates in bytes")
    second["causes"] = [second["causes"][0] | {"evidence": "It prints Mbps."}]
    part, words = section(project, others=[second])
    assert not missing_from(words, second["coupled"], "6.0 bits longer")
    contradicted = part.find("th", string=re.compile("^Against")).parent.find_all("td")
    texts = [cell.get_text() for cell in contradicted]
    assert SLIP["evidence"] in texts[0] and "It prints Mbps." in texts[1]


def test_claims_that_cannot_be_tested_or_repeat_another_have_no_robustness(project):
    path = project.root / "configs/studies/synthetic/study.yaml"
    study = json.loads(path.read_text())
    study["claims"][1]["repeats"] = "value"
    path.write_text(json.dumps(study))
    project.merge("synthetic")
    row = dict.fromkeys(TABLES["claims"], "1") | {"engine": "ns3"}
    rows = [row | {"claim": claim["id"]} for claim in study["claims"]]
    write_table(project.data / "sensitivity/synthetic/claims.csv", rows, TABLES["claims"])
    source = Source.load(project.root, project.data)
    kept, apart = varied_claims(source, source.studies["synthetic"])
    assert [row["claim"] for row in kept] == ["value", "parts"] and apart == ["wrong", "open"]


def test_an_unsuccessful_search_states_what_was_searched(project):
    none = {"result": "none found", "causes": []}
    _, words = section(project, **none, reasons=["Shuffled data fit as well."])
    assert re.search(rf"No explanation [^.]*{SEARCHED}", words)
    assert not missing_from(words, "Shuffled data fit as well.", "defaults")


def test_an_explanation_of_other_values_or_another_ns3_is_not_shown(project):
    path = project.root / "configs/studies/synthetic/study.yaml"
    study = json.loads(path.read_text())
    path.write_text(json.dumps(study | {"title": "Other words"}, indent=2))
    assert explained(project) is not None
    provenance = PROVENANCE | {"config": {"ns3_version": "3.39.post2"}}
    write_text(project.data / "provenance.json", json.dumps(provenance))
    assert explained(project) is None
    (project.data / "provenance.json").unlink()
    study["experiments"][0]["duration_s"] = 7.0
    path.write_text(json.dumps(study))
    assert explained(project) is None


def test_an_explanation_older_than_its_study_is_marked(project):
    path = project.root / "configs/studies/synthetic/study.yaml"
    study = json.loads(path.read_text())
    study["experiments"][0]["duration_s"] = 7.0
    path.write_text(json.dumps(study))
    out = project.render("synthetic")
    short = soup(out / "synthetic.html").find(id="unexplained").parent.get_text()
    assert "earlier versions" in short
    assert "make explain" in soup(out / "synthetic~evidence.html").get_text()


def test_a_level_is_named_with_its_cause():
    causes = load_explanations(ROOT, "saxena").by_id
    named = {name: c for name, c in causes.items() if c.levels and c.levels[0].title}
    name, cause = next(iter(named.items()))
    title = evidence._title_of(name, cause.levels[0].key, "t", causes)
    assert title.startswith(f"{cause.title}: ") and title.endswith(cause.levels[0].title[1:])


@pytest.mark.parametrize(
    ("study", "cause", "level", "shown"),
    [
        ("liang_shen", "window", "200", "200 segments"),
        ("liang_shen", "link_delay", "0.005", "5 ms"),
        ("liang_shen", "cbr_packets", "1500", "1,500 bytes"),
        ("nishitha", "loss", "0.001", "probability 0.001"),
        ("saxena", "buffer", "5", "5 packets"),
        ("kapadia", "access_rate", "1000000000", ""),
    ],
)
def test_a_changed_value_is_shown_with_its_unit_unless_the_title_has_it(study, cause, level, shown):
    assert number_of(load_explanations(ROOT, study).by_id[cause], level) == shown
