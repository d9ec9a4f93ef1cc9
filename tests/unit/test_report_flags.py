"""Beside a claim: the paper's own data, whether it counts, what was changed and not varied."""

import json

from replication.study.files import read_yaml, write_text
from replication.study.study import Study

from tests.unit.conftest import ROOT
from tests.unit.report_project import RATES, example, soup

#: The throughputs that the paper prints of Reno are 0.80, 1.20 and 0.12 Mbit/s.
OWN = {
    "kind": "trend",
    "of": {**RATES, "where": {"variant": "reno"}},
    "over": "access",
    "expect": {"at_least": 0.5},
}
CHANGE = {
    "date": "2026-11-22",
    "was": "Ties <b>counted</b>.",
    "now": "They do not.",
    "why": "No size is named.",
}


def counted(page):
    """Return verdict to number of the first row of claims."""
    cells = page.select_one(".tally tr[data-what=claims]").select("td[data-verdict]")
    return {td["data-verdict"]: int(td.get_text()) for td in cells}


def report_of(project, altered, **study):
    """Render the example with some of its claims changed, by their ids."""
    document = example(project.world).model_dump(mode="json", exclude_none=True)
    claims = [one | altered.get(one["id"], {}) for one in document["claims"]]
    project.add(Study.model_validate(document | {"claims": claims} | study))
    return project.render("synthetic")


def test_that_the_papers_own_data_fail_stands_beside_the_verdict(project):
    weaker = OWN | {"expect": {"at_least": -1}}
    page = soup(
        report_of(project, {"value": {"test": OWN}, "wrong": {"test": weaker}}) / "synthetic.html"
    )
    assert page.select_one("#claim-value .words .flagged")
    assert "correlation" in page.select_one("#claim-value .own-data .reason").get_text()
    assert page.select_one("#claim-wrong .words .flagged") is None
    assert "the test holds" in page.select_one("#claim-wrong .own-data summary").get_text()
    assert page.select_one("#claim-parts .own-data") is None


def test_only_results_that_repeat_none_count(project):
    document = example(project.world).model_dump(mode="json", exclude_none=True)
    claims = {one["id"]: one for one in document["claims"]}
    claims["parts"]["repeats"] = "value"
    other = claims.pop("wrong") | {"nature": "prediction"}
    del other["test"]
    out = report_of(project, {}, claims=[*claims.values()], unjudged=[other])
    page, index = soup(out / "synthetic.html"), soup(out / "index.html")
    assert sum(counted(index).values()) == 2
    said = "1 prediction, 1 repeat of another claim"
    assert said in index.get_text() and said in page.select_one(".in-short").get_text()
    assert other["quote"] in page.select_one("li#claim-wrong q").get_text()
    assert "same finding as value" in page.select_one("#claim-parts .words").get_text()


def test_what_was_changed_after_results_is_listed_and_nothing_else(project):
    before, after = {"before": {"ns3": "reproduced"}}, {"after": {"ns3": "impossible"}}
    parameters = {"access_s": before, "sweep/bottleneck_s": before}
    changes = [
        CHANGE | {"claims": {"value": before}, "tables": {"1": {}}},
        CHANGE | {"claims": {"value": before | after}, "parameters": parameters},
    ]
    document = example(project.world).model_dump(mode="json", exclude_none=True)
    own = {"bottleneck_s": document["parameters"].pop("bottleneck_s")}
    document["experiments"][0]["parameters"] = own
    kept = {name: document[name] for name in ("parameters", "experiments")}
    out = report_of(project, {}, changes=changes, **kept)
    page = soup(out / "changes.html")
    titles = [h3.get_text().split(" 2026")[0].strip() for h3 in page.select(".change h3")]
    of_parameters = ["Parameter access_s", "Parameter sweep/bottleneck_s"]
    assert titles == ["Claim value", "Claim value", "Table 1", *of_parameters]
    first, second, third = page.select(".change")[:3]
    for words in ("Words of value", "Ties <b>counted</b>.", "They do not.", "No size is named."):
        assert words in first.get_text()
    assert not page.select(".change b"), "escaped"
    verdicts = " ".join(first.select_one("[data-engine]").dd.get_text().split())
    assert verdicts == "reproduced → not judged again that day today reproduced"
    assert "impossible today reproduced" in " ".join(second.get_text().split())
    assert not third.select("[data-engine]")
    assert first.h3.a["href"] == "synthetic.html#claim-value"
    assert soup(out / "synthetic.html").select_one("#claim-value a[href='changes.html']")
    assert "(claims: 1, tables: 1, parameters: 2)" in soup(out / "index.html").get_text()


def test_a_claim_whose_experiment_was_never_varied_says_so(project):
    settings = read_yaml(ROOT / "configs/sensitivity.yaml")
    settings["other_studies"]["exploration"]["experiments"] = ["another"]
    project.write("configs/sensitivity.yaml", json.dumps(settings))
    # Without results of a sensitivity nothing was varied at all.
    for said in ([], ["claim-value", "claim-wrong", "claim-parts"]):
        cards = soup(report_of(project, {}) / "synthetic.html").select(".claim")
        assert [card["id"] for card in cards if "No sensitivity: what" in card.get_text()] == said
        write_text(project.data / "sensitivity/synthetic/claims.csv", "claim\n")
