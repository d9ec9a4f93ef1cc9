"""Words on pages and in tables: no phrase that was replaced, no ids of parameters or tables."""

import csv
import re

import pytest
from bs4 import BeautifulSoup
from replication.design.config import load_study, study_ids
from replication.report.manifest import RELEASED

from tests.browser.conftest import ROOT

#: Phrases that were replaced by plainer ones.
DISCOURAGED = (
    "in direction only",
    "what stands above",
    "it never saw",
    "columns are of replicates",
    "unseen that hold",
    "to pass on",
    "would be chance",
    "judged and not counted",
    "queues so many packets",
    "shaper's burst is another",
    "other changes do as well",
    "does as well on shuffled",
    "beyond all replicates",
    "asked for:",
    "tested and rejected",
    "one tick a design point",
    "smallest saw-teeth",
    "reductions of the window per flow",
    "beyond the replicates",
    "on different points",
    "mapped are",
    "another run may say",
    "asked of further",
    "window less bdp",
    "the other way round",
    "beside before",
    "numbers inside",
    "half of ours",
    "by the documented",
    "are wanted",
    "the search's own",
    "different results: no replicates",
    "is told",
    "heeds",
    "what is left",
    "no word",
    "a panel a",
    "a row a",
    "a line a",
    "own data do not",
    "ledger",
    "headline",
    "tells apart",
)
FORBIDDEN = re.compile("|".join(map(re.escape, DISCOURAGED)), re.IGNORECASE)
#: Names of files, commands and other people's code are in these.
CODE = "code, table.texts, q, cite, a[download], td.source, script, style, svg.static"


def identifiers():
    """Return a pattern of the studies' identifiers: names of parameters and of tables' rows."""
    names = set()
    for study in (load_study(ROOT, name) for name in study_ids(ROOT)):
        names |= study.parameters.keys()
        for experiment in study.experiments:
            names |= experiment.parameters.keys()
        for table in study.tables:
            names |= (table.rows or {}).keys()
    names = {name for name in names if "_" in name} | {"trace:", "sweep/", "pairs/"}
    return re.compile("|".join(rf"(?<![\w$]){re.escape(name)}" for name in names))


def words_of(path):
    page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    for tag in page.select(CODE):
        tag.decompose()
    return " ".join(page.get_text(" ").split())


@pytest.fixture(scope="module")
def texts(example):
    return {path.name: words_of(path) for path in example.glob("*.html")}


@pytest.mark.parametrize("unwanted", [FORBIDDEN, identifiers()], ids=["phrases", "identifiers"])
def test_no_page_has_discouraged_words_or_identifiers(texts, unwanted):
    places = []
    for name, text in texts.items():
        for match in unwanted.finditer(text):
            places.append(f"{name}: …{text[max(0, match.start() - 40) : match.end() + 20]}")
    assert not places, "\n".join(places)


@pytest.mark.parametrize("name", ["cells.csv", "claims.csv", "audit.csv", "self_consistency.csv"])
def test_no_reason_in_a_table_has_discouraged_words(name):
    with (ROOT / RELEASED / name).open(encoding="utf-8", newline="") as file:
        reasons = {row["reason"] for row in csv.DictReader(file)}
    assert not [reason for reason in reasons if FORBIDDEN.search(reason)]
