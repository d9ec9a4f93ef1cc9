"""The course: students' versions of the notebooks without solutions, and the lecturer's page."""

import json
import re
from pathlib import Path
from typing import cast

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from replication.base.errors import InputError
from replication.base.files import digest_of, read_text, write_text
from replication.report.notebooks.exercise import COURSE, SEALS, TAG, Answer, answer_of, seal
from replication.report.notebooks.notebook import page_of, read_notebook, write_notebook
from replication.report.release import replacing

#: The lecturer's text is these sections of notebooks/README.md; the first has all lectures in
#: order.
SYLLABUS, SECTION = "## The course", "## For lecturers"
LECTURER = "lecturer.html"
_WITHOUT_CHECK = "*No check: discuss your answer.*"
#: A link to a notebook, which has no page in the course.
_LINKED = re.compile(r"\[(`\w+`)\]\(\w+\.ipynb\)")
#: A solution in the prose of a lecture.
_FOLDED = re.compile(r"<details><summary>Solution</summary>.*?</details>\s*", re.DOTALL)


def write_course(root: Path) -> str:
    """Write the course of the project in `root`; return a line on what it has.

    InputError: notebooks/README.md lacks a section for lecturers.
    """
    with replacing(root / COURSE) as folder:
        answers: dict[str, Answer | None] = {}
        seals = {}
        for path in sorted((root / "notebooks").glob("*.ipynb")):
            notebook, solutions = students_version(path)
            write_notebook(folder / path.name, notebook)
            for number, (solution, answer) in enumerate(solutions, start=1):
                name = f"{path.stem}.{number}"
                answers[name] = answer
                if answer is not None:
                    seals[name] = seal(answer, digest_of(solution.encode())[:16])
        write_text(folder / SEALS, json.dumps(seals, indent=1, ensure_ascii=False) + "\n")
        text = lecturers_text(read_text(root / "notebooks" / "README.md"), answers)
        page_of(new_notebook(cells=[new_markdown_cell(text)]), folder / LECTURER, "", back="")
    checked = sum(answer is not None for answer in answers.values())
    return f"{COURSE}: {len(answers)} exercises, {checked} with a check; {COURSE / LECTURER}"


def students_version(path: Path) -> tuple[NotebookNode, list[tuple[str, Answer | None]]]:
    """Return a notebook without solutions and outputs, and its solutions with their answers."""
    notebook = read_notebook(path)
    solutions: list[tuple[str, Answer | None]] = []
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        else:
            cell.source = _FOLDED.sub("", cell.source).strip()
        if not cell.source and cell.cell_type != "code":
            continue
        if TAG not in cell.metadata.get("tags", []):
            cells.append(cell)
        elif cell.cell_type == "code":
            answer = answer_of(cell.source)
            solutions.append((cell.source, answer))
            cells.append(_check_cell(f"{path.stem}.{len(solutions)}", answer))
    notebook.cells = cells
    return notebook, solutions


def _check_cell(exercise: str, answer: Answer | None) -> NotebookNode:
    """Return the cell in which a student answers."""
    if answer is None:
        cell = new_markdown_cell(_WITHOUT_CHECK)
    else:
        cell = new_code_cell(f'answer = ...  # {answer.name}\nlab.check("{exercise}", answer)')
    return cast("NotebookNode", cell)


def lecturers_text(readme: str, answers: dict[str, Answer | None]) -> str:
    """Return the text of the lecturer's page: sections of the README, and all answers in order."""
    syllabus, section = (_section(readme, title) for title in (SYLLABUS, SECTION))
    order = re.findall(r"`(\w+)`", syllabus)
    place = {name: order.index(name) for name in order}
    names = sorted(answers, key=lambda name: place.get(name.split(".")[0], len(order)))
    rows = [_row(name, answers[name]) for name in names]
    table = "\n".join(["| exercise | answer | tolerance | hint |", "|---|---|---|---|", *rows])
    return f"# The course\n\n{syllabus}\n\n{SECTION}\n\n{section}\n\n## Answers\n\n{table}\n"


def _section(readme: str, title: str) -> str:
    """Return a section of the README without links to notebooks."""
    _, heading, rest = readme.partition(f"{title}\n")
    if not heading:
        raise InputError(f"notebooks/README.md: has no section {title!r}; add it")
    section = re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip()
    return _LINKED.sub(r"\1", section)


def _row(exercise: str, answer: Answer | None) -> str:
    if answer is None:
        return f"| {exercise} | to be discussed | | |"
    value = answer.value if isinstance(answer.value, str) else f"{answer.value:g}"
    tolerance = f"{answer.tolerance:.0%}" if answer.tolerance else "exact"
    texts = (exercise, f"`{answer.name}` = {value}", tolerance, answer.hint)
    return f"| {' | '.join(text.replace('|', '/') for text in texts)} |"
