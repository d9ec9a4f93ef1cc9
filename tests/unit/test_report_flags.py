"""Beside a claim: the paper's own data, whether it counts, what was changed and not varied."""

import json
from pathlib import Path

from replication.study.files import read_yaml, write_text

from tests.unit.report_project import RATES, TABLE, example, soup

ROOT = Path(__file__).parents[2]
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
    "before": {"ns3": "reproduced"},
}


def claims(study, **changes):
    """Return the study's claims as a file has them, some of them changed, by their ids."""
    documents = [c.model_dump(mode="json", exclude_none=True) for c in study.claims]
    return [one | changes.get(one["id"], {}) for one in documents]


def counted(page, what="claims"):
    """Return verdict to number of the first row of the tally of `what`."""
    row = page.select_one(f".tally tr[data-what={what}]")
    return {td["data-verdict"]: int(td.get_text()) for td in row.select("td[data-verdict]")}


def test_a_claim_whose_comparison_could_not_differ_is_not_testable(project):
    def idle(**_):
        return {"throughput_bps": 4e5, "packets_dropped": 0}

    def empty_queue(flow, **_):
        return [{"time_s": 1.0, "queue_packets": 0.5}] if flow == "bottleneck:ab" else []

    project.add(example(project.world), flows=idle, series=empty_queue)
    out = project.render("synthetic")
    card = soup(out / "synthetic.html").select_one("#claim-value")
    assert card.select_one(".badge").get_text() == "not testable"
    assert "could not differ: 9 of 9 points could not differ" in card.get_text()
    numbers = counted(soup(out / "index.html"))
    assert (numbers["not testable"], sum(numbers.values())) == (4, 4)
    assert {row["verdict"] for row in project.rows("claims.csv")} != {"not testable"}


def test_that_the_papers_own_data_fail_stands_beside_the_verdict(project):
    study = example(project.world)
    weaker = {**OWN, "expect": {"at_least": -1}}
    changed = claims(study, value={"test": OWN}, wrong={"test": weaker})
    project.add(project.world.study(tables=[TABLE], claims=changed))
    page = soup(project.render("synthetic") / "synthetic.html")
    words = "The paper's own data do not meet these words."
    assert page.select_one("#claim-value .words .flagged").get_text() == words
    assert "correlation" in page.select_one("#claim-value .own-data .reason").get_text()
    assert page.select_one("#claim-wrong .words .flagged") is None
    assert "the test holds" in page.select_one("#claim-wrong .own-data summary").get_text()
    assert page.select_one("#claim-parts .own-data") is None


def test_only_results_that_repeat_none_count(project):
    study = example(project.world)
    changed = claims(study, wrong={"nature": "prediction"}, parts={"repeats": "value"})
    project.add(project.world.study(tables=[TABLE], claims=changed))
    out = project.render("synthetic")
    assert sum(counted(soup(out / "index.html")).values()) == 2
    said = "1 prediction, 1 repeat of another claim"
    assert said in soup(out / "index.html").get_text()
    page = soup(out / "synthetic.html")
    assert said in page.select_one(".in-short").get_text()
    assert "Not counted: prediction." in page.select_one("#claim-wrong .words").get_text()
    assert "same finding as value" in page.select_one("#claim-parts .words").get_text()


def test_what_was_changed_after_results_is_listed_and_nothing_else(project):
    study = example(project.world)
    verdicts = {key: CHANGE[key] for key in ("before", "after") if key in CHANGE}
    words = {key: text for key, text in CHANGE.items() if key not in verdicts}
    changes = [
        words | {"claims": {"value": verdicts}, "tables": {"1": {}}},
        words
        | {
            "claims": {"value": verdicts | {"after": {"ns3": "impossible"}}},
            "parameters": {"access_s": verdicts, "sweep/bottleneck_s": verdicts},
        },
    ]
    document = study.model_dump(mode="json", exclude_none=True) | {"changes": changes}
    own = {"bottleneck_s": document["parameters"].pop("bottleneck_s")}
    document["experiments"][0]["parameters"] = own
    project.add(type(study).model_validate(document))
    out = project.render("synthetic")
    page = soup(out / "changes.html")
    titles = [h3.get_text().split(" 2026")[0].strip() for h3 in page.select(".change h3")]
    assert titles == [
        "Claim value",
        "Claim value",
        "Table 1",
        "Parameter access_s",
        "Parameter sweep/bottleneck_s",
    ]
    first, second = page.select(".change")[:2]
    for words in ("Words of value", "Ties <b>counted</b>.", "They do not.", "No size is named."):
        assert words in first.get_text()
    assert not page.select(".change b"), "escaped"
    verdicts = " ".join(first.select_one("[data-engine]").dd.get_text().split())
    assert verdicts.startswith("reproduced → not judged again")
    assert "impossible" in second.select_one("[data-engine]").get_text()
    assert not page.select(".change")[2].select("[data-engine]")
    assert first.h3.a["href"] == "synthetic.html#claim-value"
    assert soup(out / "synthetic.html").select_one("#claim-value a[href='changes.html']")
    assert "5 entries" in soup(out / "index.html").get_text()


def test_a_claim_whose_experiment_was_never_varied_says_so(project):
    project.add(example(project.world))
    settings = read_yaml(ROOT / "configs/sensitivity.yaml")
    settings["other_studies"]["exploration"]["experiments"] = ["another"]
    project.write("configs/sensitivity.yaml", json.dumps(settings))
    assert not cards_without_sensitivity(project), "nothing was varied at all"
    write_text(project.data / "sensitivity/synthetic/claims.csv", "claim\n")
    assert cards_without_sensitivity(project) == ["claim-value", "claim-wrong", "claim-parts"]


def cards_without_sensitivity(project):
    page = soup(project.render("synthetic") / "synthetic.html")
    said = "No sensitivity: what the paper leaves open was not varied in “Sweep”."
    return [card["id"] for card in page.select(".claim") if said in card.get_text()]
