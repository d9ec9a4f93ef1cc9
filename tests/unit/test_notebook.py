"""Notebooks: parameters that are checked, outputs that come from the data, pages without hosts."""

from __future__ import annotations

import itertools
import math
import re
import shutil
from dataclasses import replace
from typing import get_args
from xml.etree import ElementTree

import altair as alt
import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from papermill import inspect_notebook
from papermill.inspection import _infer_parameters
from papermill.iorw import load_notebook_node
from replication.base.errors import InputError, RunError
from replication.compare.agreement import load_differences
from replication.design.config import Paths, load_config
from replication.design.notebook_names import ANY_STUDY, SENSITIVITY, WRITTEN_FOR
from replication.design.single_run import is_built
from replication.design.start import Start
from replication.report.notebooks import picture
from replication.report.notebooks.collection import Collection, open_collection
from replication.report.notebooks.notebook import execute, read_notebook, to_html, write_notebook
from replication.report.notebooks.picture import NOT_CONCLUDED, verdicts
from replication.report.notebooks.session import design, pressure
from replication.report.pages import regions
from replication.report.release import released_results
from replication.study.study import ExperimentType
from replication.verdicts.verdict_table import read_cells, read_claims, write_verdicts

from tests.unit.conftest import ROOT, missing_from

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
#: A known difference of runs of Vegas on ns-3.
VEGAS = load_differences(ROOT).by_id["vegas_base"]


@pytest.fixture
def write(tmp_path):
    """Write a notebook of a title and code cells, one of them tagged; return its path."""

    def notebook(*sources, tagged=0):
        cells = [new_code_cell(source) for source in sources]
        if tagged is not None:
            cells[tagged].metadata["tags"] = ["parameters"]
        path = tmp_path / "n.ipynb"
        notebook = new_notebook(cells=[new_markdown_cell("# A <b>title</b>"), *cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "x"}
        notebook.metadata["language_info"] = {"name": "python"}
        nbformat.write(notebook, path)
        return path

    return notebook


def outputs(path):
    cells = [cell for cell in read_notebook(path).cells if cell.cell_type == "code"]
    return [*itertools.chain(*(cell.outputs for cell in cells))]


def texts(path):
    return [o.get("data", {}).get("text/markdown", "") for o in outputs(path)]


def text_of(path):
    return "".join(str(o.get("data", o.get("text", ""))) for o in outputs(path))


def test_every_experiment_type_has_a_notebook_with_parameters():
    assert set(WRITTEN_FOR) == set(get_args(ExperimentType))
    # The sensitivity analysis and its notebook have a separate target.
    of_studies = [*WRITTEN_FOR, ANY_STUDY, "engines", "trace_comparison", SENSITIVITY]
    guides = ["start_here", "your_paper", "regions"]
    # Lectures without a study of their own.
    guides += ["bbr", "ecn"]
    assert [path.stem for path in NOTEBOOKS] == sorted([*of_studies, *guides])
    for path in NOTEBOOKS:
        names = inspect_notebook(str(path))
        assert {"data", "root", "live"} < set(names)
        assert ("study" in names) == (path.stem in of_studies)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_notebooks_are_complete_lectures_without_paths_of_a_machine(path):
    for parameter in _infer_parameters(load_notebook_node(str(path))):
        assert parameter.inferred_type_name != "None" and len(parameter.help) > 10, parameter
    cells = read_notebook(path).cells
    sources = "\n".join(cell.source for cell in cells)
    assert "replication.simulate(" in sources and "lab.interact(" in sources
    # A lecture: a model before the data, two exercises, conclusions that are computed, sources.
    if path.stem != "regions":
        assert re.search(r"a model before", sources, re.IGNORECASE)
        solved = [cell for cell in cells if "solution" in cell.metadata.get("tags", [])]
        assert all(cell.cell_type == "code" and "assert " in cell.source for cell in solved)
        # Solutions in Markdown, which nothing executes, are the rest of the notebooks.
        assert sources.count("<details><summary>Solution</summary>\n\n") + len(solved) == 2
        assert re.search(r"\*\*where (it|the models?|the laws?) miss", sources, re.IGNORECASE)
        assert "replication.conclude(" in sources and "## References\n" in sources
        assert any(NOT_CONCLUDED not in text and text.startswith("1. **") for text in texts(path))
    assert outputs(path)
    assert all(o.output_type != "error" and o.get("name") != "stderr" for o in outputs(path))
    text = re.sub(r'"image/png": "[^"]*"', "", path.read_text(encoding="utf-8"))
    assert "papermill" not in text and not re.search(r"(/home/|/root/|/tmp/|/work/)", text)
    pictures = [o for o in outputs(path) if "image/png" in o.get("data", {})]
    assert pictures and all(o.metadata["image/png"]["alt"] for o in pictures)


def test_pages_of_notebooks_draw_formulas_without_scripts_and_leave_code_alone(tmp_path):
    prose = (
        "The window is\n\n$$W^* = \\left(\\frac{0.91\\,c}{0.57\\,n}\\right)^{3/5}$$\n\n"
        "if $p < 0.01$ & $n>1$, and `$queue` or `$rtt` are references.\n\n"
        "> $\\sqrt{\\tfrac{3}{2p}}$ segments, $W \\text{ if } x$\n"
    )
    notebook = new_notebook(cells=[new_markdown_cell(prose)])
    nbformat.write(notebook, tmp_path / "n.ipynb")
    to_html(tmp_path / "n.ipynb", tmp_path / "page.html", "A run")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    # A wide formula scrolls, so it takes the keyboard's focus.
    assert page.count('<math tabindex="0" display="block">') == 1 and page.count("<math ") == 5
    assert "<msup>" in page and "<msqrt>" in page and "&lt; 0.01" not in page
    assert "<mo>&lt;</mo><mn>0.01</mn>" in page or "<mo>&#x0003C;</mo><mn>0.01</mn>" in page
    assert "<code>$queue</code> or <code>$rtt</code>" in page
    assert "<script" not in page and "://" not in page and "$p" not in page
    for source in ("$\\left( W$", "$\\text{<script>x</script>}$", "$\\text{<b onclick='x'>x</b>}$"):
        notebook.cells[0].source = source
        nbformat.write(notebook, tmp_path / "n.ipynb")
        with pytest.raises(InputError, match="formula"):
            to_html(tmp_path / "n.ipynb", tmp_path / "page.html", "A run")


def test_executing_a_notebook_sets_parameters_and_gives_the_same_bytes_without_paths(
    tmp_path, write, monkeypatch
):
    path = write("x = ''", "print('<' + x + '>')")
    document = read_notebook(path)
    # The author's local kernel does not matter.
    document.metadata["kernelspec"] = {"name": "of-its-author", "display_name": "x"}
    nbformat.write(document, path)
    before = path.read_bytes()
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        execute(path, tmp_path / f"{name}.ipynb", {"x": str(tmp_path / "data")})
    assert (tmp_path / "a.ipynb").read_bytes() == (tmp_path / "b.ipynb").read_bytes()
    # Paths below the working folder become relative.
    assert "<data>" in text_of(tmp_path / "a.ipynb")
    assert str(tmp_path) not in (tmp_path / "a.ipynb").read_text()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("sources", "tagged", "message"),
    [
        (["a = 1"], None, "'stduy'.* none"),
        (["a = ="], 0, "'stduy'"),
        (["study = 'a'\nlimit: int = 3"], 0, "'stduy'.* study, limit"),
        (["stduy = 1", "raise KeyError('lost')"], 0, "KeyError: 'lost'"),
    ],
)
def test_a_bad_parameter_or_cell_is_named_and_leaves_no_output(
    tmp_path, write, sources, tagged, message
):
    path = write(*sources, tagged=tagged)
    with pytest.raises((InputError, RunError), match=message):
        execute(path, tmp_path / "out.ipynb", {"stduy": "b"})
    assert [p.name for p in tmp_path.iterdir()] == ["n.ipynb"]


@pytest.fixture(scope="module")
def collection():
    """The release, which notebooks read by default."""
    return open_collection("data/release", str(ROOT))


def test_the_table_of_flows_has_one_row_per_run_and_flow(collection):
    flows = collection.flows("saxena")
    factors = ["bandwidth_kb", "delay_ms", "sources", "variant"]
    assert not flows.duplicated(["experiment", *factors, "replicate", "engine", "flow"]).any()
    assert set(flows.loc[flows["experiment"] == "bandwidth", "bandwidth_kb"]) <= {
        level.value for level in collection.experiment("saxena", "bandwidth").factors[0].levels
    }
    assert list(flows["variant"].cat.categories) == ["NewReno", "Westwood", "HighSpeed"]
    of_sources = flows[flows["experiment"] == "sources"]
    counts = of_sources.groupby(["sources", "scenario", "engine"], observed=True)["flow"].nunique()
    assert len(counts) and (counts == counts.index.get_level_values("sources")).all()
    series = collection.series("kapadia", "trios", replicate=0)
    assert set(series["replicate"]) == {0} and series["time_s"].gt(0).all()
    windows = series["cwnd_bytes"] / series["segment_bytes"]
    assert windows.dropna().between(0, 500).all()


def test_published_numbers_have_the_levels_of_their_point(collection):
    delays = collection.cells("nishitha").query("column == 'delay' and variant == 'Vegas'")
    vegas = delays.drop_duplicates(["table", "row"]).set_index("environment")["published"]
    assert vegas["Ethernet / Ethernet"] == 0.0214109  # table 5.2, row 1: 21.4109 ms


def test_a_design_is_the_studys_scenario_except_for_given_changes(collection):
    stored = collection.flows("nishitha").query("replicate == 0")["scenario"]
    levels = {"variant": "vegas", "environment": "fast_fast"}
    as_it_stands = collection.design("nishitha", "homogeneous", levels)
    assert as_it_stands.id in set(stored)
    changed = collection.design("nishitha", "homogeneous", levels, queue_packets=7)
    assert changed.id != as_it_stands.id
    assert {link.queue_ab.limit_packets for link in changed.links} == {7}
    # The engine that lacks it has a substitution.
    kapadia, levels = collection.study("kapadia"), {"variant": "reno"}
    framed = {link.frame_bytes for link in design(kapadia, "trios", levels, engine="linux").links}
    assert framed - {link.frame_bytes for link in design(kapadia, "trios", levels).links} == {14}


def test_the_picture_of_a_region_is_that_of_its_page(collection):
    region = collection.region("kapadia_bbr_beside_reno", "ns3")
    panel = region.result.panels[0]
    on_page = regions.picture(region.result, panel)
    shown = region.picture(regions.panel_title(region.result, panel.panel))
    # A browser shows it as an image only if it is XML.
    paths = {path.get("class"): path.get("d") for path in ElementTree.fromstring(shown.svg).iter()}
    assert paths["contour"] == on_page["contour"] != ""
    assert paths["hatch"] == on_page["undecided"] != ""
    rules = shown.svg.partition("</style>")[0]
    for rule in (".hatch {", "path.contour, ", "\n.region .frame, "):
        assert rule in rules
    x, y = region.result.axes
    assert not missing_from(shown.alt, "ns3", x.title, y.title)


def test_an_engine_can_be_run_once_its_program_is_built(tmp_path):
    assert not is_built(ROOT, tmp_path, "ns3")
    config = load_config(ROOT / "configs" / "config.yaml")
    program = Start(ROOT, config, paths=Paths(data=tmp_path)).program("ns3")
    program.parent.mkdir(parents=True)
    program.touch()
    assert is_built(ROOT, tmp_path, "ns3")


def test_a_notebook_on_other_data_shows_other_numbers(tmp_path):
    data = shutil.copytree(released_results(ROOT), tmp_path / "data")
    study = data / "evaluation" / "nishitha"
    changed = [replace(row, published=0.3456) if row.n else row for row in read_cells(study)]
    write_verdicts(study, changed, read_claims(study))
    notebook = ROOT / "notebooks" / "homogeneous_dumbbell.ipynb"
    parameters = {"study": "nishitha", "data": str(data), "root": str(ROOT), "live": False}
    execute(notebook, tmp_path / "out.ipynb", parameters)
    assert "<td>346</td>" not in text_of(notebook)
    assert "<td>346</td>" in text_of(tmp_path / "out.ipynb")
    assert "`live` is false" in text_of(tmp_path / "out.ipynb")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_pages_of_notebooks_refer_to_no_host_and_no_script(path, tmp_path):
    to_html(path, tmp_path / "page.html", "A run")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script" not in page and "@import" not in page
    assert "url(" not in page.replace("url(#", "")
    # Links lead to the report, and to the pages of other notebooks in the same folder.
    links = re.findall(r"""(?:src|href)\s*=\s*["'](?!data:|#)([^"']*)""", page)
    pages = {f"{other.stem}.html" for other in NOTEBOOKS}
    assert "../index.html" in links and set(links) <= pages | {"../index.html", "notebook.css"}
    images = re.findall(r"<img[^>]*>", page)
    assert all(re.search(r'alt="[^"]{40,}', image) for image in images)
    # A chart is drawn in the page's ink, or is an image where that is smaller.
    drawn = re.findall(r"<svg[^>]*>", page)
    assert all(re.search(r'aria-label="[^"]{40,}', chart) for chart in drawn)
    assert drawn
    # What scrolls on a phone takes the keyboard's focus.
    assert '<div tabindex="0" class="output_' in page and "<pre>" not in page
    kinds = {picture.VEGA_LITE, "image/svg+xml"}
    shown = [output for output in outputs(path) if kinds & output.get("data", {}).keys()]
    assert len(images) + len(drawn) == len(shown)


def test_consecutive_printed_texts_become_one_output(tmp_path):
    parts = [new_output("stream", name="stdout", text=text) for text in ("two ", "parts")]
    error = new_output("stream", name="stderr", text="apart")
    cell = new_code_cell("print()", outputs=[*parts, error])
    write_notebook(tmp_path / "n.ipynb", new_notebook(cells=[cell]))
    outputs = read_notebook(tmp_path / "n.ipynb").cells[0].outputs
    assert [output.text for output in outputs] == ["two parts", "apart"]


def test_pages_of_notebooks_escape_titles_outputs_and_quotes(tmp_path, write, collection):
    path = write(
        "x = 1",
        "from IPython.display import HTML, Javascript\n"
        "HTML('<script>alert(1)</script><b onclick=x()>b</b>"
        "<table><tr><th rowspan=2 onclick=x()>c</th></tr></table>')",
        "Javascript('alert(2)')",
    )
    execute(path, tmp_path / "out.ipynb", {})
    to_html(tmp_path / "out.ipynb", tmp_path / "page.html", "A run")
    page = (tmp_path / "page.html").read_text()
    assert "<title>A &lt;b&gt;title&lt;/b&gt;</title>" in page
    assert "<script" not in page and "<b onclick" not in page
    assert "&lt;script&gt;alert(1)" in page and "<b>b</b>" in page
    # A header of several rows stays one; code is folded, and coloured by the page's style.
    assert '<th rowspan="2">c</th>' in page and page.count('<details class="code">') == 3
    assert ".k, " in (tmp_path / "notebook.css").read_text()
    claims = collection.claims("nishitha", "homogeneous_dumbbell").assign(
        quote="<img src=x onerror=alert(1)>", verdict="direction only"
    )
    table = verdicts(claims).data
    assert "<img" not in table and f"{len(claims)} direction only" in table


def test_a_drawn_chart_does_not_depend_on_the_last_digit_of_a_number():
    """It differs between processors, and committed outputs are compared on all of them."""

    def drawn(value):
        rows = pd.DataFrame({"time_s": [0.1, 0.2], "cwnd_segments": [2.0, value]})
        chart = alt.Chart(rows).mark_line().encode(x="time_s:Q", y="cwnd_segments:Q")
        return picture.Picture(chart, "A window.")._repr_mimebundle_()[0][picture.VEGA_LITE]

    assert drawn(math.nextafter(7.3, 8)) == drawn(7.3) != drawn(7.31)


def test_an_unsupported_conclusion_is_an_error_on_the_release_and_left_out_elsewhere(
    collection,
):
    """On a quick run the notebook goes on; on the release a false conclusion is an error."""
    both = (True, "Reno halves."), (False, "Vegas wins.")
    with pytest.raises(RunError, match=r"Vegas wins\."):
        collection.conclude(*both)
    elsewhere = Collection(collection.root, collection.data)
    assert elsewhere.conclude(*both)._repr_markdown_() == f"1. Reno halves.\n2. {NOT_CONCLUDED}"


def test_a_cell_that_lacks_results_is_marked_and_the_notebook_continues(tmp_path, write):
    opened = "from replication import lab\nreplication = lab.open(data, root)"
    cells = ("data = ''\nroot = ''", opened, "{}['CoDel']", "print('to the end')")
    path, out = write(*cells), tmp_path / "out.ipynb"
    elsewhere = {"data": str(released_results(ROOT)), "root": str(ROOT)}
    execute(path, out, elsewhere)
    assert f"{NOT_CONCLUDED} (KeyError: 'CoDel')" in texts(out)[-2] and "to the end" in text_of(out)
    with pytest.raises(RunError, match="KeyError: 'CoDel'"):
        execute(path, out, {"data": "data/release", "root": str(ROOT)})
    # A missing value is no result.
    with pytest.raises(RunError, match=r"lost\.csv"):
        execute(write(*cells, "replication.table('lost.csv')"), out, elsewhere)


def test_a_cell_with_live_runs_shows_the_known_differences_once(tmp_path, write):
    """Two runs of Vegas; the next cell has none."""
    run = (
        "import pandas as pd\n"
        "from replication import lab\n"
        "from replication.report.notebooks import live\n"
        "scenario = lab.dumbbell(['vegas']).scenario\n"
        "run = live.LiveRun(pd.DataFrame(), pd.DataFrame(), scenario, 'ns3', live.Path(root))\n"
        "live._note(run)\n"
        "live._note(run)\n"
        "'the result'"
    )
    execute(write("root = ''", run, "1"), tmp_path / "out.ipynb", {"root": str(ROOT)})
    result, shown, last = outputs(tmp_path / "out.ipynb")[-3:]
    assert "the result" in result.data["text/plain"] and last.data["text/plain"] == "1"
    assert shown.data["text/html"].count(VEGAS.title) == 1


def test_pressure_is_the_windows_over_path_and_queue(collection):
    """Two windows of 20 packets; the path holds 35 of 1040 bytes and its queue 49."""
    levels = {"variant": "reno", "environment": "ethernet_ethernet"}
    as_it_stands = collection.design("nishitha", "homogeneous", levels)
    assert pressure(as_it_stands) == pytest.approx(40 / (2e6 * 0.14 / 8 / 1040 + 49))
    # Table IV of saxena: 128 KiB each, 25 packets on the wires, 1100 in both queues.
    designs = {n: collection.design("saxena", "sources", {"sources": str(n)}) for n in (12, 15)}
    assert pressure(designs[12]) < 1 < pressure(designs[15])
    # CBR uses part of the wires.
    rates = ["cbr_1", "cbr_9"]
    low, high = (collection.design("liang_shen", "sweep", {"cbr_rate": rate}) for rate in rates)
    assert pressure(low) < pressure(high)
    # The queue's share of a flow of small packets: 49 packets hold 2.4 of TCP's at 8 Mbit/s.
    levels = {"cbr_rate": "cbr_8"}
    (flow, *_), held = collection.design("liang_shen", "sweep", levels).flows, 2e6 * 0.06 / 8 / 1040
    tcp, cbr = 2e6 / 1040, 8e6 / 210
    expected = flow.maximum_window_bytes / 1000 / (held + 49 * tcp / (tcp + cbr))
    assert pressure(collection.design("liang_shen", "sweep", levels)) == pytest.approx(expected)
    assert pressure(collection.design("liang_shen", "sweep", {"cbr_rate": "cbr_10"})) == math.inf
    # Segments of half the size: the windows no longer fill the path.
    assert pressure(as_it_stands, with_queue=False) > 1
    levels = {"variant": "reno", "environment": "ethernet_ethernet"}
    small = collection.design("nishitha", "homogeneous", levels, segment_bytes=500)
    assert pressure(small, with_queue=False) == pytest.approx(40 * 540 / (2e6 * 0.14 / 8))


def test_no_point_of_the_release_below_a_pressure_of_1_loses_a_packet(collection):
    """Behind DropTail and AQM, with and without CBR flows; above it nearly all do.

    Losses that a scenario asks for come at any pressure.
    """
    lossy, lossless = [], []
    for study in collection.studies:
        lost = collection.flows(study).query("kind == 'tcp'")
        lost = lost.groupby(["scenario", "engine"], observed=True)["packets_dropped"].sum()
        for experiment in collection.study(study).experiments:
            for _, engine, scenario in collection.points(study, experiment.id):
                if any(link.loss_ab or link.loss_ba for link in scenario.links):
                    continue
                is_lossy = lost[scenario.id, engine] > 0
                (lossy if is_lossy else lossless).append(pressure(scenario))
    assert min(lossy) > 1
    assert sum(value < 1 for value in lossless) > 0.95 * len(lossless)
