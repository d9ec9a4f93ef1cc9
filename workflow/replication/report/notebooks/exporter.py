"""The exporter of notebooks to pages, which draws formulas without scripts."""

import html
from pathlib import Path

from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from replication.report.pages.formulas import mathml


class _Renderer(IPythonRenderer):
    """Markdown whose formulas, $W^2$ and $$W^2$$, become MathML."""

    def inline_math(self, body: str) -> str:
        """Return a formula within a line."""
        # Prose was sanitised before.
        return str(mathml(html.unescape(body)))

    def block_math(self, body: str) -> str:
        """Return a formula on its own line."""
        return str(mathml(html.unescape(body), is_block=True))


def page_exporter(templates: Path) -> HTMLExporter:
    """Return an exporter without prompts, by the template `notebook` in a folder."""
    exporter = HTMLExporter(template_name="notebook", extra_template_basedirs=[str(templates)])
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    exporter.register_filter("markdown2html", _markdown2html)
    return exporter


def _markdown2html(source: str) -> str:
    return str(MarkdownWithMath(renderer=_Renderer(escape=False)).render(source))
