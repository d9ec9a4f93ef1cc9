"""The pipeline: what makes a rule run again, and what a user is told beforehand."""

import ast
import shutil
from pathlib import Path

import pytest
from replication.plan import code
from replication.plan.code import closure, page_hash
from replication.plan.notebook_kind import FurtherNotebook
from replication.plan.pipeline import PAGES, Pipeline
from replication.study.errors import InputError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def quick():
    return Pipeline.load(ROOT, {"tier": "quick"})


def test_a_modules_closure_holds_what_it_imports_at_any_depth():
    names = {path.stem for path in closure("replication.judge.evaluate")}
    assert {"evaluate", "claim", "comparison", "feature", "cwnd", "errors"} <= names
    assert "render" not in names
    assert "number" in {path.stem for path in closure("replication.report.pages.study")}


def test_closures_follow_every_import_that_the_parser_sees():
    package = code.SOURCES / code.PACKAGE
    for path in package.rglob("*.py"):
        wanted = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert all(not a.name.startswith("replication") for a in node.names), path.name
            elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("replication"):
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                wanted |= {code.SOURCES / f"{name.replace('.', '/')}.py" for name in names}
        module = ".".join(path.relative_to(code.SOURCES).with_suffix("").parts)
        assert {found for found in wanted if found.is_file()} <= set(closure(module)), path.name


def test_what_a_batch_starts_is_behind_it_too():
    assert {"native", "runner", "process"} <= {
        path.stem for path in closure("replication.run.simulate")
    }


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """Return a copy of the package, whose code is what is hashed."""
    package = shutil.copytree(code.SOURCES / code.PACKAGE, tmp_path / code.PACKAGE)
    monkeypatch.setattr("replication.plan.code.SOURCES", tmp_path)
    return package


def edit(path):
    path.write_text(f"{path.read_text(encoding='utf-8')}\n# changed\n", encoding="utf-8")


def test_code_changes_with_any_file_behind_it(quick, copied):
    before = quick.code("run.simulate")
    edit(copied / "report" / "render.py")
    assert quick.code("run.simulate") == before
    edit(copied / "study" / "scenario.py")
    assert quick.code("run.simulate") != before


@pytest.mark.parametrize(
    ("module", "decides"),
    [
        *[("run/gather", True), ("run/run_table", True), ("study/storage/parquet", True)],
        *[("engines/model", True), ("engines/image", False), ("run/container", False)],
        *[("run/simulate", False), ("cli/step", False), ("plan/pipeline", False)],
    ],
)
def test_batches_are_named_by_the_code_that_decides_their_tables(quick, copied, module, decides):
    settings = {"tier": "quick", "studies": "nishitha", "engines": "ns3"}
    before = set(Pipeline.load(ROOT, settings).batches)
    assert before <= set(quick.batches)
    edit(copied / f"{module}.py")
    after = set(Pipeline.load(ROOT, settings).batches)
    assert before.isdisjoint(after) if decides else before == after


@pytest.mark.parametrize(
    ("path", "pages"),
    [
        ("report/pages/surprise.py", {"index"}),
        ("report/templates/conformance.html", {"engines"}),
        ("report/templates/engines.html", {"engines"}),
        ("report/templates/point.html", {"study"}),
        ("report/pages/point.py", {"study"}),
        ("report/templates/base.html", {*PAGES, "study"}),
        ("report/writers/maps.py", {"maps"}),
    ],
)
def test_a_change_of_a_page_is_a_change_of_that_page_alone(copied, path, pages):
    def hashes():
        names = (*PAGES, "study")
        return {name: page_hash(f"replication.report.writers.{name}") for name in names}

    before = hashes()
    edit(copied / path)
    after = hashes()
    assert {name for name in before if before[name] != after[name]} == pages


def test_every_study_has_its_notebooks_once(quick):
    for _, kind in quick.notebooks():
        assert (ROOT / "notebooks" / f"{kind}.ipynb").is_file()
    assert len(set(quick.notebooks())) == len(quick.notebooks())


def test_a_further_notebook_belongs_to_the_studies_that_want_it(quick, monkeypatch):
    entry = FurtherNotebook(
        name="extra",
        wanted=lambda study, engines: study.id == "saxena" and "ns3" in engines,
        inputs=("extra.csv", "evaluation/{study}/extra.csv"),
    )
    before = quick.notebooks()
    assert quick.notebook_inputs("saxena", "extra") == []
    monkeypatch.setattr("replication.plan.notebook_kind.FURTHER", (entry,))
    assert set(quick.notebooks()) - set(before) == {("saxena", "extra")}
    inputs = [path.as_posix() for path in quick.notebook_inputs("saxena", "extra")]
    assert inputs == ["data/reproduced/extra.csv", "data/reproduced/evaluation/saxena/extra.csv"]
    assert quick.notebook_code.endswith(quick.code("lab"))


def test_the_summary_counts_scenarios_and_cost(quick):
    tier, engines, *studies, total = quick.summary()
    assert tier.startswith("tier quick: ")
    assert engines.startswith("engines: ns3")
    assert len(studies) == len(quick.studies)
    assert total.startswith("in all ")
    assert "CPU minutes" in total


def test_settings_that_name_nothing_are_refused():
    with pytest.raises(InputError, match="tier"):
        Pipeline.load(ROOT, {"tier": "none"})
    with pytest.raises(InputError, match="nobody"):
        Pipeline.load(ROOT, {"studies": "nobody"})


def test_raw_traces_count_by_their_content_and_only_for_studies_that_have_any(
    tmp_path, monkeypatch
):
    folder = tmp_path / "kapadia"
    folder.mkdir()
    trace = folder / "reno.sender-ss.csv"
    monkeypatch.setenv("REPLICATION_TRACES", str(tmp_path))
    with_traces = Pipeline.load(ROOT, {"studies": "kapadia"})
    without = Pipeline.load(ROOT, {"studies": "saxena"})
    assert (with_traces.traced, without.traced) == (["kapadia"], [])
    assert with_traces.traces == ""
    seen = []
    for text in ("1.0,a:1,,,10,\n", "1.0,a:1,,,11,\n"):
        trace.write_text(text)
        seen.append(with_traces.traces)
    assert len({*seen, ""}) == 3
    assert without.traces == ""
    monkeypatch.setenv("REPLICATION_TRACES", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="REPLICATION_TRACES"):
        Pipeline.load(ROOT, {"studies": "kapadia"})
