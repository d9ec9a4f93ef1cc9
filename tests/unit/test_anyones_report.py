"""Pages of collections that are none of ours: every sentence is true of them and reads well."""

import csv
import itertools
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from replication.design.config import load_study
from replication.report.pages.page import short_titles
from replication.study.published import published_path
from replication.study.study import Bibliography

from tests.unit.conftest import World, missing_from
from tests.unit.report_project import PROVENANCE, Project, csv_rows, soup

FILES = Path(__file__).parent / "anyones"
#: A rounding error below the published value.
BELOW = 1 - 1e-11
#: Rates of both flows (bit/s), whose index of Jain is 0.9.
RATES = {("reno", "10"): 8e6, ("cubic", "10"): 8e6, ("reno", "50"): 40e6, ("cubic", "50"): 45e6}


def shares(flow, replicate, variant, load, **_):
    part = 2 / 3 if flow == "flow1" else 1 / 3
    return {"throughput_bps": part * 0.9926 * RATES[variant, load] * BELOW - 1e-7 * replicate}


def full_link(replicate, **_):
    return {"throughput_bps": 950000 * BELOW - 1e-7 * replicate}


def office(flow, **_):
    """Rates 30 and 40 % above what is printed; the counts of packets are of something else."""
    rate = {"first": 2.6e5, "fourth": 1.4e5}.get(flow, 1e5)
    return {"throughput_bps": rate, "goodput_bps": rate, "packets_received": 2000}


QUILL = ("quill_buffer", "quill_shares")
FLOWS = {"quill_buffer": full_link, "quill_shares": shares, "ponder_office": office}
#: A change of a setting, after results of another study.
SETTING = {"date": "2026-11-22", "title": "Budgets", "files": ["sensitivity.yaml"]}
SETTING |= {"was": "Others had 900 s.", "now": "They have 800 s.", "why": "An hour is shared."}


def collection(factory, *studies, alter=lambda text: text, **results):
    """Render studies of other people, run on ns-2 alone."""
    made = Project(World(factory.mktemp("world")), factory.mktemp("project"))
    made.provenance = PROVENANCE | {"engines": {"ns2": {"version": "2.35", "fingerprint": "f"}}}
    changes = {"schema_version": 1, "changes": [SETTING]}
    made.write("configs/changes.yaml", json.dumps(changes))
    for name in studies:
        made.write(
            f"configs/studies/{name}/study.yaml", alter((FILES / f"{name}.yaml").read_text())
        )
        path = published_path(made.root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(FILES / f"{name}.csv", path)
        made.judge(
            load_study(made.root, name), path, flows=FLOWS[name], engines=("ns2",), **results
        )
    made.render(*studies)
    return made


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return collection(tmp_path_factory, *QUILL)


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    return collection(tmp_path_factory, "quill_buffer")


@pytest.fixture(scope="module")
def none(tmp_path_factory):
    """One study of a single setting and run, of which nothing matches."""
    return collection(tmp_path_factory, "ponder_office", replicates=1)


@pytest.fixture(params=["single", "two", "none"])
def either(request):
    return request.getfixturevalue(request.param)


BLOCKS = "title, h1, h2, h3, p, li, dt, dd, th, td, caption, figcaption, summary, option, q, a"


def sentences(project):
    """Every text of every page with its page, and what screen readers and pointers get."""
    for path in sorted(project.out.rglob("*.html")):
        page = soup(path)
        for tag in page.select("svg, script, style"):
            tag.decompose()
        texts = [tag.get_text() for tag in page.select(BLOCKS)]
        for name in ("aria-label", "title"):
            texts += [tag[name] for tag in page.select(f"[{name}]")]
        for text in dict.fromkeys(" ".join(text.split()) for text in texts):
            yield path.name, text


def text_of(project, page, part="main"):
    return " ".join(project.page(page).select_one(part).get_text().split())


def charts(project, study):
    """The specification of each chart of a study, as its page loads it, by name."""
    read = {}
    for path in sorted(project.out.glob(f"charts/{study}~*.js")):
        read[path.stem] = json.loads(path.read_text().partition(" = ")[2].rstrip(";\n"))
    return read


#: Things that pages count.
COUNTED = (
    "paper|stud(?:y|ies)|claim|number|value|run|point|flow|change|packet|segment|part|scenario",
    "check|finding|statement|difference|replicate|engine|statistic|trace|experiment|parameter",
    "entr(?:y|ies)|table|row|series",
)
NOUN = "|".join(COUNTED)
SINGULAR = "claim|number|paper|run|point|flow|change|check|value"
#: One of several, or several of one.
WRONG = {
    "one with a plural": rf"(?<![\d.,−-])\b(?<!of )1 (?:[a-z]+ )?(?:{NOUN})s\b",
    "a share of one": r"\b\d+ of 1 [a-z]+s\b|[Oo]f the one\b|[Nn]one of the (?:1|one)\b|[Aa]ll 1\b",
    "several with a singular": rf"(?<![\d.])\b(?:0|[2-9]|\d\d+) (?:{SINGULAR})\b(?!-)",
    "one that hold": r"(?<!and )\b1 (?:of \d+ )?(?!if |does |cannot )(?:[a-z]+ ){0,2}"
    r"(?:hold|match|are|were|do)\b",
    "nothing counted": r"\b0 (?:claims|numbers|claims and numbers|values) (?:do|are|and)\b",
    "a doubled word": r"\b([A-Za-z]{2,}) \1\b|\bflow flow\d",
    "a zero with a sign": r"[−+-]0(?:\.0+)?(?: %|\b(?![.\d]))",
    "spaces and stops": r" [,.;:](?: |$)|\.\.(?!\.)|,,|\(\)|: ?$|“”",
}


@pytest.mark.parametrize("kind", WRONG)
def test_counts_on_every_page_agree_with_their_nouns_and_verbs(either, kind):
    wrong = []
    for page, text in sentences(either):
        for match in re.finditer(WRONG[kind], text):
            wrong.append(f"{page}: {text[max(0, match.start() - 50) : match.end() + 30]}")
    assert not wrong, "\n".join(dict.fromkeys(wrong))


def test_each_rule_of_grammar_matches_a_wrong_sentence():
    wrong = (
        "We rebuilt 1 papers.",
        "0 of 1 claims hold",
        "There are 2 claim here.",
        "1 of 3 hold.",
        "0 claims and numbers do not match",
        "of flow flow2",
        "It is −0.00 % off",
        "It holds .",
    )
    for rule, text in zip(WRONG.values(), wrong, strict=True):
        assert re.search(rule, text), text


def test_pages_of_another_collection_do_not_mention_our_studies(either):
    studies = r"\b[Ff]ive\b|kapadia|nishitha|saxena|dzivhani|liang|raw samples|Linux kernel|testbed"
    studies += r"|both set-ups|simulators\b"
    pages = ("index.html", "quill_shares.html", "quill_buffer.html", "ponder_office.html")
    texts = [text for page, text in sentences(either) if page in pages]
    assert texts and not [text for text in texts if re.search(studies, text)]


def test_title_and_introduction_count_the_papers(two, single):
    for project, count in ((two, "2 TCP papers"), (single, "1 TCP paper")):
        assert project.page("index").title.get_text().startswith(f"{count},")
        introduction = text_of(project, "index", ".lead")
        assert not missing_from(introduction, count.replace("TCP ", ""), "on ns-2")


@pytest.mark.parametrize(
    ("authors", "short", "citation"),
    [
        (["Lisong Xu", "Injong Rhee"], None, "Xu & Rhee"),
        (["Rhee, Injong", "Xu, Lisong"], None, "Rhee & Xu"),
        (["Jan van der Quill"], None, "van der Quill"),
        (["Quill"], None, "Quill"),
        (["Lisong Xu", "Sangtae Ha", "Injong Rhee"], None, "Xu et al."),
        (["Lisong Xu", "Sangtae Ha", "Injong Rhee"], "RFC 9438", "RFC 9438"),
    ],
)
def test_a_study_is_cited_by_its_short_citation(authors, short, citation):
    paper = Bibliography(title="A paper", authors=authors, short=short)
    study = SimpleNamespace(bibliography=paper)
    assert short_titles({"paper": study}) == {"paper": citation}


def test_the_first_page_links_no_course_where_there_are_no_lectures(two):
    assert not two.page("method").select("#lectures")
    assert not two.page("index").select("a[href*='lectures']")


def test_two_studies_by_one_author_are_told_apart_by_year(two):
    for page in ("index", "quill_shares", "method", "engines"):
        menu = [a.get_text() for a in two.page(page).select("header nav a")]
        assert menu[:2] == ["Quill 2021", "Quill 2019"]
    described = two.page("method").select_one("#numbers-description").get_text()
    assert not missing_from(described, "Quill 2021: ", "Quill 2019: ")


def test_two_tables_with_equal_columns_are_not_merged(two):
    described = two.page("method").select_one("#numbers-description").get_text()
    assert len(re.findall(r"(?:\d of \d|number) match(?:es)?", described)) == 3
    for name, specification in charts(two, "quill_shares").items():
        for rows in specification["datasets"].values():
            assert len(set(values(rows, "display_unit"))) <= 1, name
            assert len(set(values(rows, "table"))) <= 1, name


def values(rows, name):
    """The values of a column of a chart's data."""
    column = rows.get(name, []) if isinstance(rows, dict) else [row.get(name) for row in rows]
    return column["of"] if isinstance(column, dict) else column


def test_charts_and_tables_keep_the_studys_order(two):
    page = two.page("quill_shares")
    first = page.select_one("figure.chart figcaption").get_text()
    assert "Jain’s index" in first or "Jain's index" in first
    heads = [th.get_text() for th in page.select_one("table.grid").select("thead th")][1:]
    assert heads == ["10 Mbit/s", "50 Mbit/s"]
    rows = [th.get_text() for th in page.select_one("table.grid").select("tbody th")]
    assert rows == ["Reno", "CUBIC"]
    described = page.select_one("figure.chart .description").get_text()
    assert described.index("Reno") < described.index("CUBIC")
    assert described.index("10 Mbit/s") < described.index("50 Mbit/s")


def test_axes_name_the_unit_of_a_rate_and_none_for_an_index(two):
    for name, specification in charts(two, "quill_shares").items():
        text = json.dumps({key: part for key, part in specification.items() if key != "datasets"})
        titles = re.findall(r'"title": "([^"]*)"', text)
        assert not [title for title in titles if title.endswith("(1)")], name
        assert "(Mbit/s)" in text or "Jain" in text, name
    described = [tag.get_text() for tag in two.page("quill_shares~evidence").select(".description")]
    described.append(two.page("quill_shares").select_one(".description").get_text())
    assert not [text for text in described if re.search(r"\d 1\.", text)]
    assert any("0.9 against 0.90" in text for text in described)


def test_a_single_number_and_claim_are_worded_in_the_singular(single):
    answer = text_of(single, "index", "h1 + p")
    assert answer.startswith("All do") and not re.search(r"\d of \d|numbers|claims", answer)
    short = text_of(single, "quill_buffer", ".in-short")
    assert not re.search(r"\d of \d|numbers|claims", short)
    for page in (answer, short.lower()):
        assert not missing_from(page, "the one printed number", "the one claim")


def test_only_numbers_outside_their_tolerance_are_called_too_high_or_low(two, single):
    short = text_of(two, "quill_shares", ".in-short")
    # Seven of eight lie a rounding error below what is published.
    assert not missing_from(short, "6 of 8", "too high")
    assert "too low" not in short and "too low" not in text_of(single, "quill_buffer")


def test_no_surprise_is_listed_if_everything_matches(two, single):
    assert two.page("index").select("#surprises")
    assert not single.page("index").select("#surprises")


def test_a_page_counts_what_does_not_match(two, single):
    assert "do not match" not in text_of(single, "quill_buffer")
    counts = re.search(
        r"(\d+ printed numbers?) and (\d+ claims?) do not", text_of(two, "quill_shares")
    )
    assert counts.groups() == ("1 printed number", "1 claim")


def test_a_page_of_one_experiment_states_its_result_once(single):
    assert text_of(single, "quill_buffer").count("printed number") == 1


def test_an_answer_of_the_authors_is_on_the_page_of_their_study(two):
    date, answer = "2026-11-22", "The buffer had 20 packets."
    assert not missing_from(text_of(two, "quill_shares"), date, answer)
    assert answer not in text_of(two, "quill_buffer")


def test_published_numbers_are_shown_as_printed_with_their_factor(two):
    """Printed 60.0 and 7.00 Mbit/s stand with their factor wherever they stand."""
    row = two.page("quill_shares~evidence").find(id="cell=rates~cubic~50")
    assert "60.0 × 0.9926" in row.get_text()
    assert "60000 × 0.9926 kbit/s" in text_of(two, "index")
    descriptions = [text for _, text in sentences(two) if "against" in text and "Mbit/s" in text]
    assert any(not missing_from(text, "7.94", "7.00 × 0.9926 Mbit/s") for text in descriptions)
    for page, text in sentences(two):
        assert not re.search(r"against (?:6\.95|59\.6|39\.7)\b", text), (page, text)
    rows = csv_rows(two.out / "data/cells.csv")
    (row,) = [
        row for row in rows if (row["row"], row["column"]) == ("cubic", "50") and row["unit"] != "1"
    ]
    assert (row["printed"], row["factor"], row["published"]) == ("60.0", "0.9926", "59556000")
    for specification in charts(two, "quill_shares").values():
        for rows in specification["datasets"].values():
            if "rates" in values(rows, "table"):
                assert "60.0 × 0.9926" in values(rows, "printed")


def test_downloads_contain_no_spreadsheet_formulas_and_only_ascii_minus_signs(two):
    for path in two.out.rglob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            fields = list(itertools.chain(*csv.reader(file)))
        for field in fields:
            assert "−" not in field, (path.name, field)
            assert not re.match(r"[=+@-](?![\d.]+(?:e-?\d+)?$)", field), (path.name, field)
    (row,) = [row for row in csv_rows(two.out / "data/claims.csv") if row["claim"] == "c2"]
    assert row["quote"].startswith("'@ 50 ")


def test_a_report_without_a_match_counts_none(none):
    answer = text_of(none, "index", "h1 + p")
    assert answer.startswith("None do") and answer.count("0 of 2") == 2


def test_the_median_error_leaves_out_numbers_that_cannot_be_tested(none):
    """The rates are 30 and 40 % too high, the counts of something else 300 and 1,900 %."""
    short = text_of(none, "ponder_office", ".in-short")
    assert not missing_from(short, "2 more", "35 %")


def test_changes_after_results_of_other_studies_are_not_counted(none):
    assert "after results" not in text_of(none, "index")
    assert "Nothing was changed" in text_of(none, "method", "section:has(#changes)")
    answer = text_of(none, "changes", ".answer")
    assert not missing_from(answer, "Nothing was changed", "other studies")


def test_a_unit_is_not_repeated_if_the_column_has_its_name(none):
    for page in ("ponder_office", "ponder_office~evidence"):
        assert "packets (packets)" not in text_of(none, page)


def test_an_experiment_of_one_point_lists_nothing_as_varied(none):
    page = text_of(none, "ponder_office~evidence")
    assert not missing_from(page, "WAN link: 1 Mbit/s", "0 of 1 run", "One run.")
    assert "Varied" not in page and "(varied)" not in page


def test_flows_are_listed_one_by_one_unless_their_ends_have_equal_numbers(none):
    page = text_of(none, "ponder_office~evidence")
    assert not missing_from(page, "c1 to d1, c2 to d2, c3 to d2, c4 to d1", "c1 … c4 (4)")


def test_tolerances_and_charts_name_columns_and_totals_in_words(none):
    page = text_of(none, "ponder_office~evidence")
    assert re.search(r"NewReno, packets: .*±10 %", page)
    assert "all, sum" not in page and "all flows, total" in page
