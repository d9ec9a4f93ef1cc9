"""The pipeline: what makes a rule run again, and what a user is told beforehand."""

import ast
from pathlib import Path

import pytest
from replication.plan.notebook_kind import FurtherNotebook
from replication.plan.pipeline import PACKAGE, Pipeline, closure
from replication.study.errors import InputError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def quick():
    return Pipeline.load(ROOT, {"tier": "quick"})


def test_a_modules_closure_holds_what_it_imports_at_any_depth():
    names = {path.stem for path in closure("replication.judge.evaluate")}
    assert {"evaluate", "claim", "comparison", "feature", "trace", "errors"} <= names
    assert "render" not in names
    assert "number" in {path.stem for path in closure("replication.report.pages.study")}


def test_closures_follow_every_import_that_the_parser_sees():
    for path in PACKAGE.glob("*.py"):
        wanted = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert all(not a.name.startswith("replication") for a in node.names), path.name
            elif isinstance(node, ast.ImportFrom) and node.module == "replication":
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("replication."):
                wanted.add(str(node.module).removeprefix("replication."))
        assert wanted <= {found.stem for found in closure(path.stem)}, path.name


def test_what_a_batch_starts_is_behind_it_too():
    assert {"native", "runner", "process"} <= {
        path.stem for path in closure("replication.run.simulate")
    }


def test_code_changes_with_any_file_behind_it(quick, tmp_path, monkeypatch):
    before = quick.code("simulate")
    for path in PACKAGE.glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr("replication.plan.pipeline.PACKAGE", tmp_path)
    assert quick.code("simulate") == before
    (tmp_path / "scenario.py").write_text("# changed\n", encoding="utf-8")
    assert quick.code("simulate") != before


@pytest.mark.parametrize("module", ["gather", "cli_run"])
def test_code_that_gathers_a_batch_is_in_its_name(quick, tmp_path, monkeypatch, module):
    for path in PACKAGE.glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr("replication.plan.pipeline.PACKAGE", tmp_path)
    settings = {"tier": "quick", "studies": "nishitha", "engines": "ns3"}
    before = set(Pipeline.load(ROOT, settings).batches)
    assert before <= set(quick.batches)
    (tmp_path / f"{module}.py").write_text("# changed\n", encoding="utf-8")
    assert before.isdisjoint(Pipeline.load(ROOT, settings).batches)


def test_every_study_has_its_notebooks_once(quick):
    for _, kind in quick.notebooks():
        assert (ROOT / "notebooks" / f"{kind}.ipynb").is_file()
    assert len(set(quick.notebooks())) == len(quick.notebooks())


def test_a_further_notebook_belongs_to_the_studies_that_want_it(quick, monkeypatch):
    entry = FurtherNotebook(
        name="extra",
        module="rerun",
        wanted=lambda study, engines: study.id == "saxena" and "ns3" in engines,
        inputs=("extra.csv", "evaluation/{study}/extra.csv"),
    )
    before = quick.notebooks()
    assert quick.notebook_inputs("saxena", "extra") == []
    monkeypatch.setattr("replication.plan.notebook_kind.FURTHER", (entry,))
    assert set(quick.notebooks()) - set(before) == {("saxena", "extra")}
    inputs = [path.as_posix() for path in quick.notebook_inputs("saxena", "extra")]
    assert inputs == ["data/reproduced/extra.csv", "data/reproduced/evaluation/saxena/extra.csv"]
    assert quick.notebook_code("extra").endswith(quick.code("rerun"))
    assert quick.notebook_code("queuing").endswith(quick.code("chapter"))


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
