"""The rendered report: complete, escaped, offline, accessible, and equal to the files it shows."""

import itertools
import json
import re
import shutil
from dataclasses import replace

import nbformat
import pytest
from markupsafe import Markup
from pydantic import ValidationError
from replication.base.errors import InputError
from replication.base.table import CONFORMANCE, CONFORMANCE_COLUMNS, read_rows
from replication.design.notebook_names import LECTURES
from replication.report.notebooks.notebook import write_notebook
from replication.report.pages import shown as numbers
from replication.report.pages.formulas import with_formulas
from replication.report.render import PACKAGE, render
from replication.study.study import RESERVED, Study
from replication.verdicts.verdict_table import read_cells, write_verdicts

from tests.unit.conftest import ROOT
from tests.unit.report_project import NASTY, PROVENANCE, PUBLISHED, TABLE, example, soup

TEXTS = {
    "title",
    "description",
    "scope",
    "easy",
    "hard",
    "reason",
    "source",
    "quote",
    "place",
    "question",
    "label",
    "reading",
    "venue",
    "authors",
    "threats",
    "differences",
}


def poisoned(value, counter, key=""):
    """Return a document with hostile text in every field written by people."""
    if isinstance(value, dict):
        machine = ("topology", "flows")
        return {k: v if k in machine else poisoned(v, counter, k) for k, v in value.items()}
    if isinstance(value, list):
        return [poisoned(v, counter, key) for v in value]
    if isinstance(value, str) and key in TEXTS:
        return f"{value} {NASTY.format(next(counter))}"
    return value


def test_every_text_is_shown_and_escaped(project):
    counter = itertools.count()
    plain = example(project.world).model_dump(mode="json", exclude_none=True)
    plain["notes"] |= {"threats": ["t"], "differences": ["d"]}
    document = poisoned(plain, counter)
    document["tables"][0]["id"] = "1<b>'\""
    rows = [("1<b>'\"", *row[1:]) for row in PUBLISHED]
    project.provenance = json.loads(json.dumps(PROVENANCE).replace("3.44", "3.44<i>"))
    project.add(Study.model_validate(document), rows)
    out = project.render("synthetic")

    names = ("index", "synthetic", "synthetic~evidence", "changes", "method", "engines")
    pages = [soup(out / f"{name}.html") for name in names]
    for page in [*pages, *map(soup, out.glob("runs/*.html"))]:
        for script in page.find_all("script"):
            assert script["src"].removeprefix("../").startswith("assets/")
        assert not page.select("img, iframe, b, i:not(.icon), object, base")
        for tag in page.find_all(True):
            assert not [name for name in tag.attrs if name.startswith("on")]
    shown_on = pages[1:3]
    text = ""
    for page in shown_on:
        titles = [tag.get("title", "") for tag in page.find_all(True)]
        text += page.get_text() + json.dumps(titles)
    shown = {int(number) for number in re.findall(r"window\.hit=(\d+)", text)}
    assert shown == set(range(next(counter)))
    assert "𝒯é" in text and "{{ 7*7 }}" in text
    assert "3.44<i>" in pages[0].get_text()
    for script in (out / "charts").iterdir():
        body = script.read_text(encoding="utf-8")
        assert body.isascii()
        json.loads(body.partition(" = ")[2].rstrip(";\n"))


LINKS = ("href", "src", "action", "srcset", "poster", "data-script")


def test_every_link_leads_somewhere_and_none_to_a_host(project):
    study = example(project.world)
    paper = study.bibliography.model_copy(update={"venue": "https://example.org/paper"})
    project.add(study.model_copy(update={"bibliography": paper}))
    out = project.render("synthetic")
    for path in out.rglob("*.html"):
        for tag, name in itertools.product(soup(path).find_all(True), LINKS):
            target = str(tag.get(name, ""))
            assert "//" not in target, f"{path.name}: {tag}"
            if not target or target.startswith("data:"):
                continue
            file, _, anchor = target.partition("#")
            page = path.parent / file if file else path
            assert page.is_file(), f"{path.name}: {target}"
            if anchor:
                assert soup(page).find(id=anchor), f"{path.name}: {target}"
    for path in [*out.glob("assets/*"), *out.glob("charts/*")]:
        hosts = re.findall(r"https?://[\w.-]+", path.read_text(encoding="utf-8"))
        assert set(hosts) <= {"http://www.w3.org"}, path.name
    assert str(project.root) not in "".join(p.read_text() for p in out.glob("*.html"))


def test_numbers_in_tables_match_the_csv_file(on_two_engines):
    project, out = on_two_engines, on_two_engines.out
    shown = project.page("synthetic~evidence").select("tr[data-column]")
    cells = project.rows("cells.csv")
    assert len(shown) == len(cells) == 6
    for row in cells:
        keys = {f"data-{name}": row[name] for name in ("row", "column", "engine")}
        (line,) = [tr for tr in shown if all(tr[k] == v for k, v in keys.items())]
        *numbered, interval, n = line.select("td.num")
        assert n.get_text() == row["n"] and row["verdict"] in line.get_text()
        columns = ("published", "reproduced_mean", "relative_deviation")
        for cell, column, scale in zip(numbered, columns, (1e-6, 1e-6, 100), strict=True):
            assert cell["data-value"] == row[column]
            text = cell.get_text().replace("−", "-").replace(",", "").rstrip(" %")
            rounding = 0.5 if "." not in text and scale == 100 else 0
            expected = pytest.approx(float(row[column]) * scale, rel=6e-3, abs=rounding)
            assert float(text) == expected, column
        ends = [float(row[name]) * 1e-6 for name in ("reproduced_low", "reproduced_high")]
        assert [float(e) for e in interval.get_text().split(" to ")] == pytest.approx(
            ends, rel=1e-3
        )
    for name in ("cells.csv", "claims.csv", "audit.csv", "provenance.json"):
        # Spreadsheets know ASCII minus signs alone.
        original = (project.data / name).read_text(encoding="utf-8").replace("−", "-")
        assert (out / "data" / name).read_text(encoding="utf-8") == original


def test_a_claim_shows_quote_reading_statistic_and_verdict(rendered):
    page, project = rendered.page("synthetic~evidence"), rendered
    short = rendered.page("synthetic")
    for row in project.rows("claims.csv"):
        line = short.find(id=f"claim-{row['claim']}")
        assert row["quote"] in line.get_text() and row["verdict"] in line.get_text()
        assert line.find("a")["href"] == f"synthetic~evidence.html#claim-{row['claim']}"
        card = page.find(id=f"claim-{row['claim']}")
        text = " ".join(card.get_text().split())
        assert row["quote"] in text and row["verdict"] in text and row["place"] in text
        assert all(part in text for part in row["reason"].split())
        observed = card.select_one("strong[data-value]")
        assert (observed["data-value"] if observed else "") == row["observed"]
        assert card.select_one(".badge .icon"), "the verdict has a symbol, not only a colour"


def test_several_engines_are_shown_side_by_side(on_two_engines):
    project = on_two_engines
    page, index = project.page("synthetic~evidence"), project.page("index")
    assert not project.page("synthetic").select(".engine-note"), "ns2 is the paper's own"
    (row,) = index.select(".matches tr[data-study]")
    of_primary = [r["verdict"] for r in project.rows("cells.csv") if r["engine"] == "ns2"]
    matches = f"{of_primary.count('reproduced')} of {len(of_primary)}"
    assert row.select_one("td.num").get_text() == matches
    for card in page.select(".claim"):
        engines = [dd.get_text().split()[0] for dd in card.select("dl > div:first-child dd")]
        assert engines == ["ns2", "ns3"], "the primary engine comes first"
        assert len(card.select(".others dl")) == 1, "the other is behind a toggle"
    options = page.select('.cells select[name="engine"] option')
    assert [o["value"] for o in options] == ["ns2", "ns3", ""] and options[0].has_attr("selected")


def test_the_engines_page_shows_the_table_of_conformance(project):
    project.add(example(project.world))
    (project.root / CONFORMANCE).parent.mkdir(exist_ok=True)
    shutil.copy(ROOT / CONFORMANCE, project.root / CONFORMANCE)
    page = soup(project.render("synthetic") / "engines.html")
    rows = read_rows(ROOT / CONFORMANCE, CONFORMANCE_COLUMNS)
    words = {"true": "within tolerance", "false": "outside, cause named", "refused": "refused"}
    column = {"ns3": 2, "ns2": 3, "linux": 4}
    checks = page.select("table.conformance tbody tr")
    for row in rows:
        # A formula is drawn; the words around it are as in the table.
        words_of_source = re.split(r"\\\(.+?\\\)", row["source"])
        quantity = row["quantity"].removesuffix("_s").removesuffix("_bps").replace("_", " ")
        parts = (row["scenario"], quantity, *words_of_source, row["note"])
        of_row = [check for check in checks if all(part in check.get_text() for part in parts)]
        check = of_row[0]
        assert words[row["holds"]] in check.select("td")[column[row["engine"]]].get_text()
        assert len(check.select("math")) == len(words_of_source) - 1
    assert len(page.select("table.conformance .badge")) == len(rows)


def test_the_engines_page_links_measured_differences_to_their_causes(project):
    project.add(example(project.world))
    listed = {"digest": "aaaaaaaa", "added": "2026-11-28", "reason": "first"}
    generation = {"version": "1", "canonical": {}, "runs": {}, "unexecuted": "0"}
    text = json.dumps(generation | {"sources": [listed]})
    project.write("workflow/engines/generations/ns3.yaml", text)
    project.write("workflow/engines/generations/ns2.yaml", text)
    path = project.root / "data/engine_differences.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "variant,condition,engine,metric,value,law,difference,entry,generation,scenario\n"
        "vegas,loss 1 %,ns3,retransmissions,200,,1,any,aaaaaaaa,id\n"
        "vegas,loss 1 %,ns2,retransmissions,100,,1,any,bbbbbbbb,id\n"
        "reno,loss 1 %,ns3,rtt_s,0.1,0.1,0,,aaaaaaaa,id\n"
    )
    folder = project.render("synthetic")
    page = soup(folder / "engines.html")
    (row,) = page.select("table.flows tbody tr")
    numbers = [cell.get_text() for cell in row.select("td.num")]
    assert numbers == ["1", "200 packets", "100 packets", "", ""]
    assert row.td.get_text() == "retransmissions"
    assert "version of ns2" in page.find(id="flows").parent.get_text()
    assert row.select_one("a")["href"] == "#difference-any"
    (known,) = soup(folder / "synthetic~evidence.html").select(
        'a[href="engines.html#difference-any"]'
    )
    of_study, listed = known.parent.get_text(), page.select_one("#differences ~ details dl")
    for text in (of_study, listed.get_text()):
        assert "ns3: a " in text and "ns2" not in text, "ns2 did not run"


def test_pages_say_where_engines_agree_and_differ(on_two_engines):
    project, page = on_two_engines, on_two_engines.page("engines")
    pairs = [row for row in project.rows("agreement_pairs.csv") if row["claim"]]
    differ = [row for row in pairs if row["agree"] == "false"]
    assert differ and any(row["agree"] == "" for row in pairs)
    decided = [row["agree"] for row in project.rows("agreement_pairs.csv") if row["agree"]]
    section = page.find(id="agreement").parent.get_text()
    assert f"{decided.count('true')} of {len(decided)} comparisons" in section
    details = page.select(".disagreement[data-study]")
    assert len(details) == len(differ) + 1, "the table's column is one"
    text = details[0].get_text()
    assert "affect throughput" in text
    assert not page.find_all(["img", "b"]) and "window.hit=t" in text, "escaped"
    index = " ".join(project.page("index").get_text().split())
    several = len([row for row in pairs if row["agree"]])
    assert f"{len(differ)} of {several} claims" in index


def test_a_substitute_engine_is_marked_on_every_page(rendered):
    for name in ("index", "synthetic", "engines"):
        (mark,) = rendered.page(name).select(".engine-note")
        assert mark["data-engine"] == "ns3" and "ns-2" in mark.get_text()


def test_only_chosen_studies_are_shown_and_the_quick_tier_is_marked(project):
    project.add(example(project.world))
    # One study has only claims, one only numbers.
    claims = example(project.world).model_dump()["claims"]
    project.add(project.world.study(id="words", claims=claims))
    project.add(project.world.study(id="other", tables=[TABLE]))
    out = project.render("synthetic", "words", "other")
    assert soup(out / "words~evidence.html").select(".claim")
    assert soup(out / "other.html").select(".cells")
    pages = [soup(path) for path in out.glob("*.html")]
    assert len(pages) == 10 and not any(page.select(".banner") for page in pages)
    quick = {"tier": {"id": "quick", "levels": "quick"}, "config": {"studies": ["other"]}}
    project.provenance = PROVENANCE | quick
    pages = [soup(path) for path in project.render("other").glob("*.html")]
    assert len(pages) == 6 and "synthetic.html" not in str(pages)
    assert all("provisional" in page.select_one(".banner").get_text() for page in pages)
    again = soup(out / "index.html").select_one("#again ~ p code").get_text()
    settings = {"TIER=quick", "ENGINES=ns3", "STUDIES=other"}
    assert again.startswith("make report ") and settings <= set(again.split())


def test_a_further_work_has_a_line_on_the_first_page_and_is_not_counted(project):
    project.add(example(project.world))
    project.add(project.world.study(id="another", group="further works", tables=[TABLE]))
    out = project.render("another", "synthetic")
    page = soup(out / "index.html")
    lines = page.select(".matches tr[data-study]")
    assert [line["data-study"] for line in lines] == ["synthetic", "another"]
    assert ["further work" in line.get_text() for line in lines] == [False, True]
    answer = page.select_one(".answer").get_text()
    alone = soup(project.render("synthetic") / "index.html").select_one(".answer").get_text()
    assert answer == alone and "1 paper " in page.select_one(".lead").get_text()
    menu = [entry.get_text() for entry in page.select("header nav li")]
    assert menu[:3] == ["Nobody (synthetic)", "Further works:", "Nobody (another)"]
    # Alone they are what the page is about.
    alone = soup(project.render("another") / "index.html")
    assert "1 of 3" in alone.select_one(".answer").get_text()


def notebooks_of(out, study):
    links = soup(out / f"{study}.html").select('a[href^="notebooks/"]')
    pages = {path.name: path.read_text() for path in out.glob(f"notebooks/{study}.*")}
    assert sorted(a["href"] for a in links) == sorted(f"notebooks/{name}" for name in pages)
    assert all("Looked at" in text for text in pages.values())
    return {a.get_text() for a in links}


def test_notebooks_of_the_studys_type_and_engines_are_converted_and_linked(project):
    project.add(example(project.world, id="s.1"), engines=("ns3", "ns2"))
    looked = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Looked at")])
    # The notebook of the type is about a different paper.
    for kind in ("any_study", "homogeneous_dumbbell", "engines", "sensitivity"):
        write_notebook(project.root / "reports" / "notebooks" / f"s.1.{kind}.ipynb", looked)
    assert notebooks_of(project.render("s.1"), "s.1") == {"any study", "engines"}
    project.add(example(project.world, id="s.1"))
    assert notebooks_of(project.render("s.1"), "s.1") == {"any study"}


def test_a_lecture_across_studies_is_linked_if_one_of_its_studies_is_shown(project):
    project.add(example(project.world, id="s.1"))
    lecture = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A lecture")])
    for name in LECTURES:
        write_notebook(project.root / "reports" / "notebooks" / f"{name}.ipynb", lecture)
    out = project.render("s.1")
    assert "A lecture" in (out / "notebooks/ecn.html").read_text()
    links = soup(out / "method.html").select('a[href^="notebooks/"]')
    assert [link["href"] for link in links] == ["notebooks/ecn.html", "notebooks/your_paper.html"]


def test_a_study_named_like_a_page_of_the_report_is_refused(project):
    templates = (PACKAGE / "templates").glob("*.html")
    pages = {path.stem for path in templates if '{% extends "base.html" %}' in path.read_text()}
    assert pages - {"study", "evidence", "point", "region_study"} < RESERVED
    for name in RESERVED:
        with pytest.raises(ValidationError, match=rf"choose another.*\n?.*{name}"):
            example(project.world, id=name)


def test_a_failed_rendering_leaves_the_last_report(project):
    project.add(example(project.world))
    out = project.render("synthetic")
    before = (out / "index.html").read_bytes()
    rows = [replace(row, verdict="perhaps") for row in read_cells(project.data)]
    write_verdicts(project.data, rows, [])
    with pytest.raises(InputError, match=r"verdicts\.parquet: .*'perhaps'"):
        render(project.root, project.data, project.root / "none", out)
    assert (out / "index.html").read_bytes() == before
    assert [p.name for p in out.parent.iterdir()] == ["html"]


def test_pages_are_built_for_assistive_technology(rendered):
    """Check points that axe-core in a browser does not call serious."""
    for path in rendered.out.rglob("*.html"):
        page = soup(path)
        levels = [int(head.name[1]) for head in page.find_all(re.compile(r"^h[1-6]$"))]
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(b <= a + 1 for a, b in itertools.pairwise(levels)), levels
        assert len(page.find_all("main")) == 1 and page.find("a", class_="skip")["href"] == "#main"
        assert all(th.get("scope") for th in page.find_all("th"))
        names = [tag["id"] for tag in page.find_all(id=True)]
        assert len(names) == len(set(names))
        for plot in page.select(".plot"):
            words = plot.get("aria-label") or page.find(id=plot["aria-labelledby"]).get_text()
            assert words.strip() and plot.find("svg", class_="static"), "seen without scripts"
        assert path.stat().st_size < 5e6


@pytest.mark.parametrize(
    ("show", "fields", "shown"),
    [
        # Published numbers keep their digits.
        (numbers.published, ("1964130", "5", "bit/s"), "1.96413"),
        (numbers.published, ("0.122144", "5e-07", "s"), "122.144"),
        (numbers.published, ("6108387.164", "5e-10", "bit/s"), "6.108387164"),
        (numbers.published, ("", "", "1"), "–"),
        # Ours have four at most.
        (numbers.number, ("1964130", "bit/s"), "1.964"),
        (numbers.number, ("-0.25", "1"), "−0.25"),
        (numbers.number, ("123456", "packets"), "123,456"),
        (numbers.number, ("1e-09", "1"), "1.000e−09"),
        (numbers.number, ("9.9996", "1"), "10"),
        # Deviations are signed percentages.
        (numbers.percent, ("0.0321",), "+3.2 %"),
        (numbers.percent, ("-0.45",), "−45 %"),
        (numbers.percent, ("-1e-11",), "0.00 %"),
    ],
)
def test_numbers_are_shown_in_display_units_with_their_digits(show, fields, shown):
    assert show(*fields).shown == shown


def test_texts_for_readers_show_formulas_without_scripts():
    shown = with_formulas(r"It lasts \(\frac38 W^2\) packets if \(a < b\) & <b>.")
    assert shown.count('<math display="inline">') == 2 and "<mfrac>" in shown
    assert shown.startswith("It lasts <math") and shown.endswith("</math> &amp; &lt;b&gt;.")
    assert "http" not in shown
    # Escaped already, as what a macro returns.
    assert "<mo>&#x0003C;</mo>" in with_formulas(Markup(r"\(a &lt; b\)"))
    for other in ("$queue, $rtt", 3, None, Markup("<b>")):
        assert with_formulas(other) is other
    with pytest.raises(InputError, match="formula"):
        with_formulas(r"\(\left( W\)")
