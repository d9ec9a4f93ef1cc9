"""A map in words: sentences made from its account, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replication.judge.wording import lower
from replication.measure.metric_label import display_unit

Account = Mapping[str, Any]

#: Sides of a border as a grid's cells have them, in the order in which bars show them.
SIDES = ("holds", "border", "unknown", "fails")
#: From this share of its space on a sentence holds nearly everywhere; from one less it, nowhere.
_NEARLY = 0.9


@dataclass(frozen=True)
class Axis:
    """One axis of a map, as charts and sentences have it."""

    title: str
    unit: str
    low: float
    high: float
    log: bool
    factor: float

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Axis:
        """Return an account's axis in display units."""
        unit, factor = display_unit(document["unit"])
        low, high = (float(document[end]) * factor for end in ("low", "high"))
        return cls(document["title"], unit, low, high, bool(document["log"]), factor)

    def at(self, place: float) -> float:
        """Return the value at a position, 0 to 1."""
        if self.log:
            return float(self.low * (self.high / self.low) ** place)
        return self.low + place * (self.high - self.low)

    def words(self, place: float) -> str:
        """Return the value at a position with its unit."""
        return f"{_short(self.at(place))} {self.unit}".strip()

    @property
    def label(self) -> str:
        """Title and unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title


def _short(value: float) -> str:
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}".replace("-", "\u2212")
    return f"{value:.3g}".replace("-", "\u2212")


def axes_of(account: Account) -> tuple[Axis, Axis]:
    """Return the axes across and up."""
    across, up = map(Axis.of, account["axes"])
    return across, up


def facet_title(account: Account, facet: list[str]) -> str:
    """Return a facet in words; empty where the map has no such axes."""
    titles = [axis["levels"][key] for axis, key in zip(account["facets"], facet, strict=True)]
    return ", ".join(titles)


def headline(account: Account) -> str:
    """Return where the sentence holds on the account's engine, and how well that is known."""
    share = account["share"]
    if share is None:
        return f"On {account['engine']} nothing can be said: {_why_not(account)}"
    spared = sum(point["expected"] is None for point in account["points"])
    sentence = f"On {account['engine']} it holds at {100 * share:.0f} % of the mapped space"
    if len(account["grids"]) > 1:
        sentence += f" ({'; '.join(_shares(account))})"
    width = account["width"]
    if width:
        sentence += f"; the border is known to {100 * width:.2g} % of each axis"
        if width > account["width_wanted"]:
            sentence += f", where {100 * account['width_wanted']:.2g} % are wanted"
    return f"{sentence}, by {spared} points where a full grid has {account['full_grid_points']}."


def check(account: Account) -> str:
    """Return how the border did at fresh points."""
    if not account["checked"]:
        return "The border was not checked: this tier runs no fresh points."
    low, high = account["right_interval"]
    return (
        f"At {account['checked']} fresh points on both sides of the border it is right at "
        f"{account['right']} (95 % interval {100 * low:.0f} to {100 * high:.0f} %)."
    )


def areas(account: Account) -> dict[str, float]:
    """Return the share of all charts' space that lies on each side of the border, or on it."""
    grids = account["grids"]
    return {
        side: sum(grid["area"].get(side, 0.0) for grid in grids) / len(grids)
        for side in SIDES
        if any(grid["area"].get(side) for grid in grids)
    }


def answer(accounts: Sequence[Account]) -> str:
    """Return what all maps say together."""
    shares = [one["share"] for one in accounts if one["share"] is not None]
    everywhere = sum(share >= _NEARLY for share in shares)
    nowhere = sum(share <= 1 - _NEARLY for share in shares)
    sentences, papers = (len({one[key] for one in accounts}) for key in ("map", "study"))
    words = (
        f"Mapped are {sentences} sentences of {papers} papers, on up to two engines. The sentence "
        f"holds at {100 * _NEARLY:.0f} % of the space or more in {everywhere} of "
        f"{len(accounts)} maps, at {100 - 100 * _NEARLY:.0f} % or less in {nowhere}, and up to a "
        f"border in {len(shares) - everywhere - nowhere}."
    )
    checked, right = (sum(one[key] for one in accounts) for key in ("checked", "right"))
    if checked:
        words += (
            f" The borders are right at {right} of {checked} fresh points beside them "
            f"({100 * right / checked:.0f} %)."
        )
    return words


def details(account: Account, grid: Mapping[str, Any]) -> list[str]:
    """Return what stands below a facet's chart: thresholds, and where the paper's point lies."""
    axes = axes_of(account)
    needs = [_needs(axis, t) for axis, t in zip(axes, grid["thresholds"], strict=True) if t]
    return [*needs, *_paper(account, axes, grid["paper"])]


def _shares(account: Account) -> Iterator[str]:
    for grid in account["grids"]:
        if grid["share"] is not None:
            yield f"{facet_title(account, grid['facet'])}: {100 * grid['share']:.0f} %"


def _why_not(account: Account) -> str:
    reasons = [point["reason"] for point in account["points"] if point["reason"]]
    return f"{reasons[0]}." if reasons else "no point was run."


def _needs(axis: Axis, threshold: Mapping[str, Any]) -> str:
    side = "above" if threshold["above"] else "below"
    median, low, high = (axis.words(threshold[key]) for key in ("median", "lowest", "highest"))
    if low == high:
        return f"It needs: {lower(axis.title)} {side} {median}."
    return f"It needs: {lower(axis.title)} {side} {median} ({low} to {high} along the other axis)."


def _paper(
    account: Account, axes: tuple[Axis, Axis], paper: Mapping[str, Any] | None
) -> Iterator[str]:
    if paper is None:
        return
    own = [
        f"{lower(axis.title)} {_short(document['paper'] * axis.factor)} {axis.unit}".strip()
        for axis, document in zip(axes, account["axes"], strict=True)
    ]
    where = " and ".join(own)
    if paper["side"] == "outside":
        yield f"The paper's own point lies outside of the map ({where})."
        return
    side = {"holds": "where it holds", "fails": "where it fails"}.get(
        paper["side"], "on the border"
    )
    borders = [
        f"{axis.words(place)} ({lower(axis.title)})"
        for axis, place in zip(axes, paper["border"], strict=True)
        if place is not None
    ]
    nearest = f"; the border nearest to it is at {' or '.join(borders)}" if borders else ""
    yield f"The paper's own point ({where}) lies {side}{nearest}."
