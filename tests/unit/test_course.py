"""Exercises: what solutions assert, checks that do not name it, and students' versions."""

from __future__ import annotations

import json
import shutil

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from replication import lab
from replication.base.errors import InputError
from replication.report.notebooks.course import COURSE, LECTURER, SECTION, SYLLABUS, write_course
from replication.report.notebooks.exercise import (
    SEALS,
    Answer,
    answer_of,
    check,
    is_right,
    seal,
    unit_hint,
)
from replication.report.notebooks.notebook import to_html

from tests.unit.conftest import ROOT, missing_from, numbers_in

SOLUTION = """# The path holds *P* packets,
# and the queue 49 more.
first_loss = int(83.7 // 2) + 2
if live:
    assert 1 == 2
assert first_loss == 43
print(f"Losses start at {first_loss}.")"""
OPEN = "assert starts[20] > 4 and starts[40] < 0\nprint('It depends on the buffer.')"


FOLDED = "<details><summary>Solution</summary>\n\nA secret.\n</details>"


def solution(source, **changes):
    outputs = [new_output("stream", text="Losses start at 43.\n")]
    return new_code_cell(source, metadata={"tags": ["solution"]}, outputs=outputs, **changes)


@pytest.fixture
def project(tmp_path):
    """A project of one notebook with two exercises."""
    cells = [
        new_markdown_cell("# A lecture"),
        new_code_cell("from replication import lab\nlive = False", execution_count=1),
        new_markdown_cell("**1.** From which window on?"),
        solution(SOLUTION),
        new_markdown_cell(
            "**2.** Why?\n\n<details><summary>Solution</summary>\n\nA secret.\n</details>"
        ),
        solution(OPEN),
        new_markdown_cell("The end of a secret.", metadata={"tags": ["solution"]}),
    ]
    for number, cell in enumerate(cells):
        # A random id may contain the answer.
        cell.id = f"cell{number}"
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "configs/studies").mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), tmp_path / "notebooks/lecture.ipynb")
    readme = f"# Notebooks\n\n{SYLLABUS}\n\n1. [`lecture`](lecture.ipynb)\n\n"
    readme += f"{SECTION}\n\nBring a clock.\n\n## Later\n\nNot for lecturers.\n"
    (tmp_path / "notebooks/README.md").write_text(readme)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (SOLUTION, ("first_loss", 43, 0, "The path holds *P* packets, and the queue 49 more.")),
        ("assert abs(third - 14.67) < 0.01", ("third", 14.67, 0.01, "")),
        ("assert abs(share - 0.2) < 0.01", ("share", 0.2, 0.05, "")),
        ("assert 37 < boundary_kb < 38", ("boundary_kb", 37.5, 0.013333, "")),
        ("assert round(index, 3) == 0.988 and x == 1", ("round(index, 3)", 0.988, 0.01, "")),
        ("assert law > bound\nassert kind == 'value'", ("kind", "value", 0, "")),
        ("assert int(needed // 1024) == 356", ("int(needed // 1024)", 356, 0, "")),
        # Two quantities, a bound on one side, and an assertion that does not always run.
        ("assert abs(factor / expected - 1) < 0.01", None),
        ("assert abs(a - b) < 1e-12", None),
        (OPEN, None),
        ("if live:\n    assert first == 3", None),
    ],
)
def test_the_answer_to_check_is_the_value_that_a_solution_asserts(source, expected):
    answer = answer_of(source)
    if answer is not None:
        answer = answer._replace(tolerance=round(answer.tolerance, 6))
    assert answer == (expected and Answer(*expected))


@pytest.mark.parametrize(
    ("answer", "right", "wrong"),
    [
        (Answer("n", 43, 0.0, ""), (43, 43.0, "43"), (42, 44, 43.01, -43, None, "many")),
        (Answer("x", 14.67, 0.01, ""), (14.67, 14.6, 14.8), (14.5, 14.9, -14.67, 0, float("nan"))),
        (Answer("x", -0.2, 0.05, ""), (-0.2, -0.191), (-0.189, -0.211, 0.2)),
        (Answer("x", 1e9, 0.01, ""), (1.009e9,), (1.02e9, 1.0)),
        (Answer("x", 0.5, 0.01, ""), (0.5, "50 %", "0.5"), (50, "0.5 %", "half", [0.5])),
        (Answer("kind", "Value", 0.0, ""), ("value", " VALUE "), ("trend", 1)),
    ],
)
def test_a_sealed_answer_accepts_only_right_values_and_hides_them(answer, right, wrong):
    kept = seal(answer, "salt")
    assert [is_right(kept, value) for value in right] == [True] * len(right)
    assert [is_right(kept, value) for value in wrong] == [False] * len(wrong)
    assert str(answer.value) not in json.dumps(kept)
    assert kept["seal"] != seal(answer, "pepper")["seal"]


@pytest.mark.parametrize(
    ("answer", "value", "facts"),
    [
        (Answer("kb", 37.5, 0.01, ""), 37500, ("1000 times", "large")),
        (Answer("share", 0.5, 0.01, ""), 50, ("100 times", "large")),
        (Answer("mbps", 5.32, 0.01, ""), 0.665, ("8 times", "small")),
        (Answer("n", 43, 0.0, ""), "43 packets", ("without a unit",)),
        (Answer("n", 43, 0.0, ""), 44, ()),
        (Answer("kind", "value", 0.0, ""), "trend", ()),
    ],
)
def test_the_hint_names_a_wrong_unit(answer, value, facts):
    kept = seal(answer, "salt")
    assert not is_right(kept, value)
    hint = unit_hint(kept, value)
    assert not missing_from(hint, *facts) and bool(facts) == bool(hint)


def test_students_get_checks_instead_of_solutions(project, monkeypatch):
    exercises, checked, *_ = numbers_in(write_course(project))
    assert (exercises, checked) == (2, 1)
    text = (project / COURSE / "lecture.ipynb").read_text()
    for secret in ("43", "secret", "Losses start", "first_loss = int", "It depends"):
        assert secret not in text and secret not in (project / COURSE / SEALS).read_text()
    cells = nbformat.reads(text, as_version=4).cells
    assert cells[3].source == 'answer = ...  # first_loss\nlab.check("lecture.1", answer)'
    assert cells[5].source.startswith("*No check") and len(cells) == 6
    assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]
    monkeypatch.chdir(project / COURSE)
    assert lab.check("lecture.1", 43).data == "**Right.**"
    hint = "The path holds *P* packets, and the queue 49 more."
    assert check("lecture.1", 42).data == f"**Not yet.** Hint: {hint}"
    assert "dots" in check("lecture.1", ...).data
    with pytest.raises(InputError, match=r"'lecture\.3'.*nearest: lecture\.1"):
        check("lecture.3", 1)
    # From elsewhere in the project too; without a course it says what to do.
    monkeypatch.chdir(project / "notebooks")
    assert check("lecture.1", 43).data == "**Right.**"
    shutil.rmtree(project / COURSE)
    with pytest.raises(InputError, match="make course"):
        check("lecture.1", 43)


def test_the_lecturers_page_has_the_syllabus_its_section_and_all_answers(project):
    write_course(project)
    page = (project / COURSE / LECTURER).read_text()
    assert "Bring a clock." in page and "Not for lecturers" not in page
    assert "<code>first_loss</code> = 43" in page and "to be discussed" in page
    assert "<code>lecture</code>" in page and "lecture.ipynb" not in page
    assert "Back to" not in page and "<script" not in page
    (project / "notebooks/README.md").write_text("# Notebooks\n")
    with pytest.raises(InputError, match="## The course"):
        write_course(project)
    # The last course stays.
    assert (project / COURSE / LECTURER).is_file()


def test_pages_of_notebooks_fold_solutions(project):
    to_html(project / "notebooks/lecture.ipynb", project / "page.html", "A run")
    page = (project / "page.html").read_text()
    before, *folded = page.split('<details class="solution"><summary>Solution</summary>')
    assert len(folded) == 3 and "From which window on?" in before and "43" not in before
    assert "first_loss" in folded[0] and "Losses start at 43." in folded[0]


def test_the_course_of_the_project_has_two_checked_exercises_a_lecture(tmp_path):
    for name in ("notebooks", "configs/studies"):
        shutil.copytree(ROOT / name, tmp_path / name)
    # Each lecture and seminar has two exercises that a student can check.
    assert numbers_in(write_course(tmp_path))[:2] == [32, 32]
    names = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert names == {path.name for path in (tmp_path / COURSE).glob("*.ipynb")}
    text = "".join(path.read_text() for path in (tmp_path / COURSE).glob("*.ipynb"))
    assert "Solution</summary>" not in text and '"solution"' not in text
    page = (tmp_path / COURSE / LECTURER).read_text()
    # Every lecture has its place in the order, and answers follow that.
    stems = {name.removesuffix(".ipynb") for name in names}
    assert len(stems) == 16 and all(f"<code>{stem}</code>" in page for stem in stems)
    first, last = page.index("start_here.1"), page.index("any_study.2")
    assert first < page.index("bdp_jain.1") < page.index("bbr.1") < page.index("ecn.1") < last
