"""The picture of a region in notebooks, which is that of the report's pages."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from replication.base.files import read_text
from replication.explore.regions.region_rows import PanelRow, RegionResult
from replication.report.pages.page import plain_environment
from replication.report.pages.regions import picture

_STYLES = Path(__file__).parents[1] / "assets" / "report.css"
#: The first rule of what is in a picture, and the first after these.
_FIRST, _AFTER = ".surface path", "p.key {"
#: Colours that pages set for light and dark; a notebook shows pictures on white.
_COLOURS = "--ink: #000; --strong-line: #777; --paper: #fff; --v-failed: #d55e00; background: #fff"
_WIDTH = 620


@dataclass(frozen=True)
class RegionPicture:
    """A picture for the last line of a cell; `alt` describes its axes and result."""

    svg: str
    alt: str

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data = {"image/svg+xml": self.svg, "text/plain": f"({self.alt})"}
        return data, {"image/svg+xml": {"alt": self.alt}}


def region_picture(region: RegionResult, panel: PanelRow, alt: str) -> RegionPicture:
    """Return the picture of a panel of a region's result, with its styles."""
    template: Any = plain_environment().get_template("region_picture.html").module
    shown, rules = picture(region, panel), read_text(_STYLES)
    style = rules[rules.index(_FIRST) : rules.index(_AFTER)].replace("figure.region", ".region")
    inner = Markup(f"<style>\n{style}</style><defs>{template.hatching()}</defs>")
    attributes = Markup(
        f' xmlns="http://www.w3.org/2000/svg" class="region" width="{_WIDTH}" font-size="11"'
        f' font-family="sans-serif" style="{_COLOURS}"'
    )
    return RegionPicture(str(template.region_svg(shown, alt, attributes, inner)), alt)
