"""Execute notebooks, reproducibly by byte, and convert them to pages."""

import html
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from replication.base.environment import environment_of_notebooks
from replication.base.errors import InputError, RunError
from replication.base.files import read_text, write_text

#: Jupyter's name for the kernel of this interpreter; a notebook may name a kernel that only its
#: author has.
_KERNEL = "python3"
_TIME_LIMIT_S = 600
#: The folder of the nbconvert template `notebook`.
_TEMPLATES = Path(__file__).parents[1] / "templates"
#: Tags that outputs may have in a page; others are shown as text.
_ALLOWED_TAGS = (
    *("p", "h4", "b", "i", "q", "cite", "ul", "ol", "li", "code", "pre", "div", "span"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("details", "summary"),
)
#: How sanitising changes the mark of a quotation in Markdown.
_QUOTED = re.compile(r"^&gt;", re.MULTILINE)
#: A link to a notebook, whose page is in the same folder.
_LINK = re.compile(r'<a href="(\w+)\.ipynb">(.*?)</a>')
#: Code that the style sheet does not colour.
_PLAIN = re.compile(r'<span class="(?:n|nn|o|p|w)">([^<]*)</span>')
#: What scrolls on a narrow screen, and so must take the focus of a keyboard.
_SCROLLS = re.compile(
    r'<pre(?=>)|<math(?= display="block")|<div(?= class="output_(?:html|png|svg|text|subarea))'
)
#: The style sheet of all pages, in their folder.
STYLE = "notebook.css"
#: The styles that pandas puts before each table.
_SCOPED = re.compile(r"<style scoped>.*?</style>\s*", re.DOTALL)
#: A chart is an SVG if it has at most so many times the bytes of its PNG.
_MOST_SVG = 1.4
_KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": _KERNEL}


def read_notebook(path: Path) -> NotebookNode:
    """Read and validate a notebook; InputError if it is missing or invalid."""
    text = read_text(path)
    try:
        notebook: NotebookNode = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
    # nbformat raises several types on JSON that is no notebook.
    except (nbformat.ValidationError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: is not a notebook: {str(error)[:200]}") from None
    return notebook


def execute(notebook: Path, output: Path, parameters: Mapping[str, Any]) -> None:
    """Execute a notebook with parameters and write it with its outputs if every cell ran.

    Paths below the working folder become relative, so that outputs name no folder of the machine.
    InputError: it cannot be read or has no such parameter; RunError: a cell failed.
    """
    import papermill

    read_notebook(notebook)
    known = papermill.inspect_notebook(str(notebook))
    # Papermill only logs unknown parameters.
    if unknown := [name for name in parameters if name not in known]:
        has = ", ".join(known) or "none"
        raise InputError(f"{notebook}: has no parameter {unknown[0]!r}; it has {has}")
    here = Path.cwd()
    paths = {}
    for name, value in parameters.items():
        if isinstance(value, str) and Path(value).is_relative_to(here):
            paths[name] = Path(value).relative_to(here).as_posix()
    with tempfile.TemporaryDirectory(prefix="notebook-") as folder:
        executed = Path(folder) / "executed.ipynb"
        try:
            # The user's IPython profile could change outputs.
            with environment_of_notebooks(folder):
                papermill.execute_notebook(
                    str(notebook),
                    str(executed),
                    parameters={**parameters, **paths},
                    kernel_name=_KERNEL,
                    language="python",
                    progress_bar=False,
                    execution_timeout=_TIME_LIMIT_S,
                )
        except papermill.PapermillExecutionError as error:
            raise RunError(
                f"{notebook}: cell {error.exec_count}: {error.ename}: {error.evalue}"
            ) from None
        except (TimeoutError, RuntimeError) as error:
            raise RunError(f"{notebook}: {error}") from None
        write_notebook(output, read_notebook(executed))


def write_notebook(path: Path, notebook: NotebookNode) -> None:
    """Write an executed notebook without run times, paths and kernel versions."""
    notebook.metadata = {"kernelspec": _KERNELSPEC, "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        cell.metadata = {"tags": tags} if tags else {}
        cell.id = f"cell-{number:02d}"
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    text: str = nbformat.writes(notebook)
    write_text(path, text.rstrip("\n") + "\n")


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Return outputs with printed text in one piece; a busy machine delivers it in several."""
    joined: list[NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last is not None and last.get("name") and last.get("name") == output.get("name"):
            last.text += output.text
        else:
            joined.append(output)
    return joined


def to_html(
    notebook: Path, output: Path, whose: str, pages: Mapping[str, str] | None = None
) -> None:
    """Write an executed notebook as a page with the footer `whose`, and its style sheet.

    `pages` names the page of each notebook that has one; by default all have one of their name.
    """
    page_of(read_notebook(notebook), output, whose, pages=pages)


def page_of(
    document: NotebookNode,
    output: Path,
    whose: str,
    back: str = "../index.html",
    pages: Mapping[str, str] | None = None,
) -> None:
    """Write a notebook as a page that leads back to a page, or to none."""
    from nbconvert.preprocessors.sanitize import SanitizeHTML

    from replication.report.notebooks.exporter import page_exporter

    for shown in _outputs(document):
        if "text/html" in shown.get("data", {}):
            shown.data["text/html"] = _SCOPED.sub("", shown.data["text/html"])
    pictures = _pictures(document)
    # By default the sanitiser shows table heads and paragraphs as text.
    heads = {"th": ["rowspan", "colspan"]}
    sanitizer = SanitizeHTML(tags=list(_ALLOWED_TAGS), attributes=heads)
    document, _ = sanitizer.preprocess(document, {})
    for cell in document.cells:
        if cell.cell_type == "markdown":
            cell.source = _QUOTED.sub(">", cell.source)
    for place, picture in pictures.items():
        _outputs(document)[place].data = {"image/svg+xml": picture}
    exporter = page_exporter(_TEMPLATES)
    title = _title(document) or output.stem
    resources = {"title": title, "whose": whose, "back": back}
    page, _ = exporter.from_notebook_node(document, resources)
    page = _LINK.sub(lambda link: _link(link[1], link[2], pages), page)
    page = _SCROLLS.sub(r'\g<0> tabindex="0"', page)
    write_text(output, _PLAIN.sub(r"\1", page))
    write_text(output.parent / STYLE, read_text(_TEMPLATES / "notebook" / STYLE))


def _link(notebook: str, words: str, pages: Mapping[str, str] | None) -> str:
    """Return a link to a notebook's page, or only its words if it has none."""
    page = f"{notebook}.html" if pages is None else pages.get(notebook)
    return f'<a href="{page}">{words}</a>' if page else words


def _title(notebook: NotebookNode) -> str:
    """Return the first heading of a notebook; empty without one."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and (heading := re.match(r"#\s+(.+)", cell.source)):
            return heading[1].strip()
    return ""


def _pictures(notebook: NotebookNode) -> dict[int, str]:
    """Return pictures as SVG by the index of their output, charts unless the PNG is much smaller.

    A PNG is white on a dark page.
    """
    # Executing notebooks draws nothing, and importing Altair takes a second.
    from replication.report.notebooks.picture import VEGA_LITE
    from replication.report.pages.page import svg_of

    pictures = {}
    for place, output in enumerate(_outputs(notebook)):
        data = output.get("data", {})
        if "image/svg+xml" in data:
            pictures[place] = data["image/svg+xml"]
        elif VEGA_LITE in data:
            words = html.escape(output.metadata["image/png"]["alt"])
            picture = str(svg_of(data[VEGA_LITE], f"output-{place}")).replace(
                'aria-hidden="true"', f'role="img" aria-label="{words}"'
            )
            if len(picture) < _MOST_SVG * len(data["image/png"]):
                pictures[place] = picture
    return pictures


def _outputs(notebook: NotebookNode) -> list[NotebookNode]:
    outputs: list[NotebookNode] = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            outputs += cell.outputs
    return outputs
