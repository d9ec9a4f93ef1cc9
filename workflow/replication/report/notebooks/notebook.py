"""Notebooks: executing one on a study's results, keeping its outputs, and making it a page.

Outputs depend on the notebook, its parameters and the data alone: times, paths and kernel names of
the machine are taken out of an executed notebook before it is written.
"""

from __future__ import annotations

import ast
import html
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from replication.report.notebooks.picture import VEGA_LITE
from replication.report.pages.page import svg_of
from replication.simulate.environment import environment_of_notebooks
from replication.study.errors import InputError, RunError
from replication.study.files import read_text, write_text

Parameters = Mapping[str, str | int | float | bool | None]
TAG = "parameters"
#: Jupyter's name of the kernel of the interpreter that runs us; the notebook's own name may be
#: one that only its author has.
KERNEL = "python3"
TIME_LIMIT_S = 600
#: The folder of the nbconvert template `notebook`.
_TEMPLATES = Path(__file__).parents[1] / "templates"
#: Markup that outputs may have in a page; anything else is shown as text.
_ALLOWED_TAGS = (
    *("p", "h4", "b", "i", "q", "cite", "ul", "ol", "li", "code", "pre", "div", "span"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("details", "summary"),
)
#: What sanitising makes of a quotation's mark in Markdown.
_QUOTED = re.compile(r"^&gt;", re.MULTILINE)
#: A link to another notebook, whose page is in the same folder.
_LINK = re.compile(r'(href="\w+)\.ipynb"')
#: Code that the style does not colour.
_PLAIN = re.compile(r'<span class="(?:n|nn|o|p|w)">([^<]*)</span>')
#: The style of all pages, beside them.
STYLE = "notebook.css"
#: The styles that pandas puts before each table.
_SCOPED = re.compile(r"<style scoped>.*?</style>\s*", re.DOTALL)
_KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": KERNEL}


def read_notebook(path: Path) -> NotebookNode:
    """Read and validate a notebook; InputError if it is missing or none."""
    text = read_text(path)
    try:
        notebook: NotebookNode = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
        nbformat.validate(notebook)
    # nbformat fails in its own ways on JSON of another shape.
    except (nbformat.ValidationError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: is not a notebook: {str(error)[:200]}") from None
    return notebook


def parameter_names(path: Path) -> list[str]:
    """Return the names that the notebook's cell tagged `parameters` assigns, in its order.

    InputError: the notebook has no such cell, several, or one that is not Python.
    """
    cells = [
        cell
        for cell in read_notebook(path).cells
        if cell.cell_type == "code" and TAG in cell.metadata.get("tags", [])
    ]
    if len(cells) != 1:
        raise InputError(f"{path}: has {len(cells)} cells tagged {TAG!r}; it needs exactly one")
    try:
        body = ast.parse(cells[0].source).body
    except SyntaxError as error:
        raise InputError(f"{path}: the cell tagged {TAG!r} is not Python: {error.msg}") from None
    targets = [
        target
        for one in body
        if isinstance(one, ast.Assign | ast.AnnAssign)
        for target in (one.targets if isinstance(one, ast.Assign) else [one.target])
    ]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def execute(notebook: Path, output: Path, parameters: Parameters) -> None:
    """Execute a notebook with parameters; write it with its outputs if every cell ran.

    Paths below the working folder become relative: outputs name no folder of the machine.
    InputError: it cannot be read or has no such parameter; RunError: a cell failed.
    """
    import papermill

    # Papermill only logs a parameter that the notebook does not have.
    known = parameter_names(notebook)
    for name in parameters:
        if name not in known:
            raise InputError(f"{notebook}: has no parameter {name!r}; it has {', '.join(known)}")
    relative = {name: _relative(value) for name, value in parameters.items()}
    with tempfile.TemporaryDirectory(prefix="notebook-") as folder:
        executed = Path(folder) / "executed.ipynb"
        try:
            # Settings of the user's own IPython would change what is shown.
            with environment_of_notebooks(folder):
                papermill.execute_notebook(
                    str(notebook),
                    str(executed),
                    parameters=relative,
                    kernel_name=KERNEL,
                    language="python",
                    progress_bar=False,
                    log_output=False,
                    execution_timeout=TIME_LIMIT_S,
                )
        except papermill.PapermillExecutionError as error:
            raise RunError(
                f"{notebook}: cell {error.exec_count}: {error.ename}: {error.evalue}"
            ) from None
        except (TimeoutError, RuntimeError) as error:
            raise RunError(f"{notebook}: {error}") from None
        write_notebook(output, read_notebook(executed))


def write_notebook(path: Path, notebook: NotebookNode) -> None:
    """Write an executed notebook without what differs from one machine or run to the next."""
    text: str = nbformat.writes(cleaned(notebook))  # type: ignore[no-untyped-call]
    write_text(path, text.rstrip("\n") + "\n")


def cleaned(notebook: NotebookNode) -> NotebookNode:
    """Return the notebook without run times, paths and kernel versions."""
    notebook.metadata = {"kernelspec": _KERNELSPEC, "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        cell.metadata = {"tags": tags} if tags else {}
        cell.id = f"cell-{number:02d}"
    return notebook


def _relative(value: Any) -> Any:
    if isinstance(value, str) and Path(value).is_absolute():
        path, here = Path(value).resolve(), Path.cwd().resolve()
        if path.is_relative_to(here):
            return path.relative_to(here).as_posix()
    return value


def to_html(notebook: Path, output: Path, whose: str) -> None:
    """Write an executed notebook as one page, and beside it the style that all of them share.

    Its foot says `whose` results it shows. InputError if the file is no notebook.
    """
    from nbconvert import HTMLExporter
    from nbconvert.preprocessors.sanitize import SanitizeHTML

    document = read_notebook(notebook)
    for shown in _outputs(document):
        if "text/html" in shown.get("data", {}):
            shown.data["text/html"] = _SCOPED.sub("", shown.data["text/html"])
    pictures = _pictures(document)
    # The exporter's own sanitising knows no table heads and paragraphs and shows them as text.
    heads = {"th": ["rowspan", "colspan"]}
    sanitizer = SanitizeHTML(tags=list(_ALLOWED_TAGS), attributes=heads)  # type: ignore[no-untyped-call]
    document, _ = sanitizer.preprocess(document, {})  # type: ignore[no-untyped-call]
    for cell in document.cells:
        if cell.cell_type == "markdown":
            cell.source = _QUOTED.sub(">", cell.source)
    for place, picture in pictures.items():
        _outputs(document)[place].data = {"image/svg+xml": picture}
    exporter = HTMLExporter(template_name="notebook", extra_template_basedirs=[str(_TEMPLATES)])  # type: ignore[no-untyped-call]
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    resources = {"title": _title(document, notebook.stem), "whose": whose}
    page, _ = exporter.from_notebook_node(document, resources)
    write_text(output, _PLAIN.sub(r"\1", _LINK.sub(r'\1.html"', page)))
    write_text(output.parent / STYLE, read_text(_TEMPLATES / "notebook" / STYLE))


def _pictures(notebook: NotebookNode) -> dict[int, str]:
    """Return charts as SVG in the page's ink by their output, but where a PNG is smaller."""
    found = {}
    for place, output in enumerate(_outputs(notebook)):
        data = output.get("data", {})
        if VEGA_LITE in data:
            words = html.escape(output.metadata["image/png"]["alt"])
            picture = str(svg_of(data[VEGA_LITE], f"output-{place}")).replace(
                'aria-hidden="true"', f'role="img" aria-label="{words}"'
            )
            if len(picture) < len(data["image/png"]):
                found[place] = picture
    return found


def _outputs(notebook: NotebookNode) -> list[NotebookNode]:
    return [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]


def _title(notebook: NotebookNode, fallback: str) -> str:
    prose = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    titles = (re.match(r"#\s+(.+)", source) for source in prose)
    return next((found[1].strip() for found in titles if found), fallback)
