"""The page of changes is complete: a day of a change in a file of configs has an entry."""

import re
from pathlib import Path

import pytest
import yaml
from replication.design.config import load_settings_changes, load_study, study_ids
from replication.report.pages.changes import changes_page
from replication.study.study import Study

from tests.unit.conftest import ROOT
from tests.unit.report_project import example, soup

CONFIGS = ROOT / "configs"
DAY = r"2026-\d\d-\d\d"
#: Keys of entries and causes, and days on which something was written or measured.
TYPED = re.compile(rf'\b(?:date|published|refuted): ["\']?{DAY}')
DONE = re.compile(rf"\b(?:[Ww]ritten|measured) on {DAY}")


def days_in(text: str) -> set[str]:
    """Return the days that a document's comments and prose name as those of changes."""
    words = re.sub(r"\s*\n\s*(?:# ?)?", " ", text)
    return set(re.findall(DAY, DONE.sub("", TYPED.sub("", words))))


def declared(path: Path) -> set[str]:
    """Return the days of the entries on a file."""
    name = path.relative_to(CONFIGS)
    if name.parts[0] == "studies":
        return {change.date for change in load_study(ROOT, name.parts[1]).changes}
    if name.parts[0] in ("regions", "regions.yaml"):
        document = yaml.safe_load(path.read_text())
        return {str(change["date"]) for change in document.get("changed", [])}
    return {
        change.date for change in load_settings_changes(ROOT) if name.as_posix() in change.files
    }


def documents() -> list[Path]:
    """Return all documents of configs that do not list changes themselves."""
    return sorted(path for path in CONFIGS.rglob("*.yaml") if path.name != "changes.yaml")


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(CONFIGS)))
def test_every_date_of_a_change_in_a_file_is_in_the_list_of_changes(path):
    assert not days_in(path.read_text()) - declared(path), "add an entry to changes.yaml"


@pytest.mark.parametrize("name", study_ids(ROOT))
def test_every_date_in_a_parameters_reason_is_in_the_list_of_changes(name):
    study = load_study(ROOT, name)
    for parameter, reason in reasons(study):
        known = {change.date for change in study.changes_to("parameters", parameter)}
        assert not days_in(reason) - known, f"{parameter}: add it to changes.yaml"


def reasons(study: Study) -> list[tuple[str, str]]:
    assumed = [(name, parameter.assumed) for name, parameter in study.parameters.items()]
    for experiment in study.experiments:
        for name, parameter in experiment.parameters.items():
            assumed.append((f"{experiment.id}/{name}", parameter.assumed))
    return [(name, tag.reason) for name, tag in assumed if tag]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("x: 1\n# 400 s until 2026-11-30, after results were seen\n", {"2026-11-30"}),
        ("x:\n  reason: >-\n    A default. Changed on\n    2026-11-30: it was 50.", {"2026-11-30"}),
        ("# Written on 2026-11-21.\nsources: [measured on\n  2026-11-26]", set()),
        ("added: {date: 2026-11-22, results: after}\nrefuted: 2026-11-26", set()),
        ('changed:\n  - date: "2026-11-26"\n    was: x', set()),
    ],
)
def test_dates_of_writing_and_measuring_are_not_dates_of_changes(text, days):
    assert days_in(text) == days


def test_every_file_named_in_the_list_of_changes_exists():
    for change in load_settings_changes(ROOT):
        assert all((CONFIGS / name).is_file() for name in change.files), change.title


def test_the_page_lists_every_kind_of_change_once(project):
    project.add(example(project.world, changes=[EXPERIMENT]))
    project.write("configs/changes.yaml", yaml.safe_dump({"changes": [SETTING]}))
    page = soup(project.render("synthetic") / "changes.html")
    articles = [" ".join(article.get_text().split()) for article in page.select(".change")]
    assert len(articles) == 2
    assert articles[0].startswith("2026-11-23 experiment “")
    assert articles[1].startswith("2026-11-24 Budgets")
    for key in ("was", "now", "why"):
        assert EXPERIMENT[key] in articles[0] and SETTING[key] in articles[1]


def test_counts_of_changed_verdicts_include_claims_no_longer_testable():
    page = changes_page(ROOT, [load_study(ROOT, name) for name in study_ids(ROOT)])
    assert page.moves["no longer testable"] > 40
    studies = [view.moves for view in page.studies]
    assert sum(page.moves.values()) == sum(sum(moves.values()) for moves in studies)


EXPERIMENT = {
    "date": "2026-11-23",
    "was": "One run of each point.",
    "now": "Five runs.",
    "why": "One is too few.",
    "experiments": {"sweep": {}},
}
SETTING = {
    "date": "2026-11-24",
    "title": "Budgets",
    "files": ["sensitivity.yaml"],
    "was": "An hour at most.",
    "now": "Two hours at most.",
    "why": "An hour was not enough.",
}
