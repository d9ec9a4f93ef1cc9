"""Notebooks: parameters that are checked, outputs that come from the data, pages without hosts."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from replication.report.notebooks.experiment import ExperimentNotebook, find_project
from replication.report.notebooks.fixture import LIMIT_BYTES, make_fixture
from replication.report.notebooks.notebook import (
    check_parameters,
    cleaned,
    execute,
    parameter_names,
    read_notebook,
    to_html,
)
from replication.study.errors import InputError, RunError
from replication.study.seal import NAME as SEAL
from replication.study.seal import write_sealed

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FIXTURE = ROOT / "notebooks" / "fixture"


def write(path, *sources, tagged=0):
    cells = [new_code_cell(source) for source in sources]
    if tagged is not None:
        cells[tagged].metadata["tags"] = ["parameters"]
    nbformat.write(new_notebook(cells=[new_markdown_cell("# A <b>title</b>"), *cells]), path)
    return path


def outputs(path):
    return [o for c in read_notebook(path).cells if c.cell_type == "code" for o in c.outputs]


def text_of(path):
    return "".join(str(o.get("data", o.get("text", ""))) for o in outputs(path))


def test_there_is_a_notebook_for_every_kind_with_its_parameters():
    from typing import get_args

    from replication.plan.notebook_kind import FURTHER
    from replication.study.study import ExperimentType

    # The sensitivity has a target of its own, and its notebook with it.
    kinds = [*get_args(ExperimentType), *(further.name for further in FURTHER), "sensitivity"]
    assert [path.stem for path in NOTEBOOKS] == sorted(kinds)
    for path in NOTEBOOKS:
        assert parameter_names(path) == ["study", "data", "root"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_notebooks_have_outputs_and_nothing_of_a_machine(path):
    text = path.read_text(encoding="utf-8")
    assert outputs(path)
    assert all(o.output_type != "error" and o.get("name") != "stderr" for o in outputs(path))
    source = re.sub(r'"image/png": "[^"]*"', "", text)
    assert "papermill" not in source and not re.search(r"(/home/|/root/|/tmp/|/work/)", source)
    pictures = [o for o in outputs(path) if "image/png" in o.get("data", {})]
    assert pictures and all(o.metadata["image/png"]["alt"] for o in pictures)


def test_unknown_parameter_is_an_error_that_names_it_and_the_known_ones(tmp_path):
    path = write(tmp_path / "n.ipynb", "study = 'a'\nlimit: int = 3")
    with pytest.raises(InputError, match="no parameter 'stduy'; it has study, limit"):
        execute(path, tmp_path / "out.ipynb", {"stduy": "b"})
    assert not (tmp_path / "out.ipynb").exists()
    check_parameters(path, {"study": "b", "limit": 4})


@pytest.mark.parametrize(
    ("sources", "tagged", "message"),
    [
        (["a = 1"], None, "0 cells tagged"),
        (["a = ="], 0, "is not Python"),
    ],
)
def test_bad_parameter_cells_are_named(tmp_path, sources, tagged, message):
    path = write(tmp_path / "n.ipynb", *sources, tagged=tagged)
    with pytest.raises(InputError, match=message):
        parameter_names(path)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"cells": 3, "nbformat": 4}'])
def test_what_is_not_a_notebook_is_named(tmp_path, content):
    path = tmp_path / "n.ipynb"
    path.write_text(content)
    with pytest.raises(InputError, match=r"n\.ipynb"):
        parameter_names(path)
    with pytest.raises(InputError, match="cannot be read"):
        parameter_names(tmp_path / "missing.ipynb")


def test_parameters_reach_the_notebook_and_outputs_are_deterministic(tmp_path):
    path = write(tmp_path / "n.ipynb", "x = 1", "print(x * 2)")
    before = path.read_bytes()
    for name in ("a", "b"):
        execute(path, tmp_path / f"{name}.ipynb", {"x": 21})
    assert (tmp_path / "a.ipynb").read_bytes() == (tmp_path / "b.ipynb").read_bytes()
    assert "42" in text_of(tmp_path / "a.ipynb")
    assert path.read_bytes() == before


def test_a_kernel_name_that_is_not_installed_does_not_matter(tmp_path):
    path = write(tmp_path / "n.ipynb", "x = 1", "print(x)")
    document = read_notebook(path)
    document.metadata["kernelspec"] = {"name": "of-its-author", "display_name": "x"}
    nbformat.write(document, path)
    execute(path, tmp_path / "out.ipynb", {})
    assert read_notebook(tmp_path / "out.ipynb").metadata.kernelspec.name == "python3"


def test_a_failing_cell_is_one_line_and_leaves_no_output(tmp_path):
    path = write(tmp_path / "n.ipynb", "x = 1", "raise KeyError('lost')")
    target = tmp_path / "out.ipynb"
    with pytest.raises(RunError, match="KeyError: 'lost'"):
        execute(path, target, {})
    assert [p.name for p in tmp_path.iterdir()] == ["n.ipynb"]


def test_absolute_paths_below_the_working_folder_become_relative(tmp_path, monkeypatch):
    path = write(tmp_path / "n.ipynb", "x = ''", "print('<' + x + '>')")
    monkeypatch.chdir(tmp_path)
    execute(path, tmp_path / "out.ipynb", {"x": str(tmp_path / "data")})
    assert "<data>" in text_of(tmp_path / "out.ipynb")
    assert str(tmp_path) not in (tmp_path / "out.ipynb").read_text()


def test_cleaning_takes_out_times_and_ids():
    notebook = new_notebook(cells=[new_code_cell("1")], metadata={"papermill": {"duration": 1}})
    notebook.cells[0].metadata["execution"] = {"iopub.status.busy": "2000-01-01"}
    assert "papermill" not in cleaned(notebook).metadata
    assert notebook.cells[0].metadata == {} and notebook.cells[0].id == "cell-00"


@pytest.fixture(scope="module")
def other_data(tmp_path_factory):
    """The fixture with one verdict turned and one number changed."""
    folder = tmp_path_factory.mktemp("other") / "data"
    shutil.copytree(FIXTURE, folder)
    path = folder / "evaluation" / "nishitha" / "cells.csv"
    lines = path.read_text().splitlines()
    head = lines[0].split(",")
    row = lines[1].split(",")
    row[head.index("published")] = "0.123456"
    lines[1] = ",".join(row)
    write_sealed(path, "\n".join(lines) + "\n")
    return folder


def test_a_notebook_on_other_data_shows_other_numbers(tmp_path, other_data):
    notebook = ROOT / "notebooks" / "homogeneous_dumbbell.ipynb"
    execute(
        notebook,
        tmp_path / "out.ipynb",
        {"study": "nishitha", "data": str(other_data), "root": str(ROOT)},
    )
    assert "<td>0.123</td>" not in text_of(notebook)
    assert "<td>0.123</td>" in text_of(tmp_path / "out.ipynb")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_page_of_a_notebook_refers_to_no_host_and_no_script(path, tmp_path):
    write_sealed(tmp_path / path.name, path.read_text(encoding="utf-8"))
    to_html(tmp_path / path.name, tmp_path / "page.html", "A run")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:|#)""", page)
    body = page.partition("<main>")[2]
    assert "<h1" in body and "<thead>" in body and not re.search(r"&lt;/?(p|tbody|h\d|q)&gt;", body)
    assert "<script" not in page and "@import" not in page and "url(" not in page
    words = re.sub(r"data:image/png;base64,[^\"]*", "", page)
    assert not re.search(r"https?:|mathjax|require\.js|cdn", words, re.IGNORECASE)
    images = re.findall(r"<img[^>]*>", page)
    assert images and all(re.search(r'alt="[^"]{40,}', image) for image in images)


def test_page_escapes_its_title_and_what_outputs_try(tmp_path):
    path = write(
        tmp_path / "n.ipynb",
        "x = 1",
        "from IPython.display import HTML, Javascript\n"
        "HTML('<script>alert(1)</script><b onclick=x()>b</b>')",
        "Javascript('alert(2)')",
    )
    execute(path, tmp_path / "out.ipynb", {})
    to_html(tmp_path / "out.ipynb", tmp_path / "page.html", "A run")
    page = (tmp_path / "page.html").read_text()
    assert "<title>A &lt;b&gt;title&lt;/b&gt;</title>" in page
    assert "<script" not in page and "<b onclick" not in page
    assert "&lt;script&gt;alert(1)" in page and "<b>b</b>" in page


def test_findings_are_made_from_the_verdicts():
    chapter = ExperimentNotebook.open(
        "nishitha", "homogeneous_dumbbell", "notebooks/fixture", str(ROOT)
    )
    chapter.claims["verdict"] = "direction only"
    said = chapter.findings().markup
    assert f"Of {len(chapter.claims)} claims" in said or "direction only" in said
    assert "<b>reproduced</b>" not in said


def test_chapter_escapes_words_of_a_study():
    chapter = ExperimentNotebook.open(
        "nishitha", "homogeneous_dumbbell", "notebooks/fixture", str(ROOT)
    )
    chapter.claims["quote"] = "<img src=x onerror=alert(1)>"
    assert "<img" not in chapter.findings().markup


def test_chapter_says_what_is_missing(tmp_path):
    with pytest.raises(InputError, match="no experiment of type queuing"):
        ExperimentNotebook.open("nishitha", "queuing", "notebooks/fixture", str(ROOT))
    with pytest.raises(InputError, match="no such file"):
        ExperimentNotebook.open("nishitha", "homogeneous_dumbbell", str(tmp_path), str(ROOT))
    with pytest.raises(InputError, match="set `root`"):
        find_project(tmp_path)


def test_fixture_is_complete_small_and_without_the_machine():
    size = sum(p.stat().st_size for p in FIXTURE.rglob("*") if p.is_file())
    assert 0 < size <= LIMIT_BYTES
    provenance = json.loads((FIXTURE / "provenance.json").read_text())
    assert provenance["tier"]["id"] == "quick" and "platform" not in provenance


def test_cutting_a_fixture_again_changes_nothing(tmp_path):
    first, again = tmp_path / "first", tmp_path / "again"
    make_fixture(ROOT, FIXTURE, first, ["nishitha"])
    make_fixture(ROOT, first, again, ["nishitha"])
    names = {path.relative_to(first) for path in first.rglob("*") if path.is_file()}
    # One record of all, none of each.
    assert {name for name in names if name.suffix == ".sha256"} == {Path(SEAL)}
    for name in names:
        assert (again / name).read_bytes() == (first / name).read_bytes()
        if name.suffix == ".parquet" and name.parts[0] == "results":
            assert pd.read_parquet(first / name).equals(pd.read_parquet(FIXTURE / name))


def test_a_fixture_from_incomplete_results_leaves_the_old_one(tmp_path):
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "old").write_text("old")
    with pytest.raises(InputError):
        make_fixture(ROOT, tmp_path / "nothing", tmp_path / "cut", ["nishitha"])
    assert [p.name for p in tmp_path.iterdir()] == ["cut"]
    assert (tmp_path / "cut" / "old").exists()
