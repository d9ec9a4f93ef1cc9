"""Sentences on regions: borders as numbers, the distance of the paper's own point, and the law."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from replication.base.table import BBR_SHARE_COLUMNS, BBR_SHARES, grouped, read_rows
from replication.explore.regions.border import Row, State, Stretch, told_rows
from replication.explore.regions.region_rows import AxisRow, Measure, PanelRow, RegionResult
from replication.metrics.metric_model import display_unit as unit_of
from replication.report.pages.shown import amount
from replication.study.variation import rounded
from replication.verdicts.wording import figure, lower

#: A row with more stretches that are decided has no border that a reader can use.
_MOST_STRETCHES = 4
_VERBS = {
    State.HOLDS: "it holds",
    State.FAILS: "it fails",
    State.CANNOT_DIFFER: "the alternatives cannot differ",
}


def border_sentences(result: RegionResult, panel: PanelRow) -> list[str]:
    """Return where a claim holds along the axis x as sentences, one for each row that is told."""
    rows = told_rows(result, panel)
    y = result.axes[1]
    everywhere = f"Every {lower(y.title)}"
    sentences = []
    for row in rows:
        where = everywhere if len(rows) == 1 else f"{y.title} {_amount(row.y, y.unit)}"
        sentences.append(f"{where}: {_row(result, row, has_sizes=not panel.ties)}.")
    return sentences


def _row(result: RegionResult, row: Row, has_sizes: bool) -> str:
    decided = [stretch for stretch in row.stretches if stretch.state != State.UNDECIDED]
    if not decided:
        return "it is undecided"
    rest = "; the rest is undecided" if len(decided) < len(row.stretches) else ""
    states = {stretch.state for stretch in decided}
    if len(decided) > 1 and len(states) == 1:
        return f"{_VERBS[decided[0].state]} wherever it is known{rest}"
    if len(decided) > _MOST_STRETCHES:
        return "there is no single border"
    return joined([_stretch(result, stretch, has_sizes) for stretch in decided]) + rest


def _stretch(result: RegionResult, stretch: Stretch, has_sizes: bool) -> str:
    x = result.axes[0]
    if stretch.low is None and stretch.high is None:
        place = f"at every {lower(x.title)}"
    elif stretch.low is None:
        place = f"below {_amount(stretch.high or 0.0, x.unit)}"
    elif stretch.high is None:
        place = f"above {_amount(stretch.low, x.unit)}"
    else:
        low = figure(short(stretch.low * unit_of(x.unit)[1]))
        place = f"from {low} to {_amount(stretch.high, x.unit)}"
    shows_size = has_sizes and stretch.state == State.FAILS
    return f"{_VERBS[stretch.state]} {place}{_size(result.measure, stretch) if shows_size else ''}"


def _size(measure: Measure, stretch: Stretch) -> str:
    """Return the range of the compared quantity, such as " (ratio 1.29 to 13.1)"."""
    values = (stretch.least * measure.factor, stretch.most * measure.factor)
    ends = dict.fromkeys(figure(short(value, digits=3)) for value in values)
    return f" ({measure.noun} {' to '.join(ends)} {measure.unit}".rstrip() + ")"


def short(value: float, digits: int = 2) -> float:
    """Return a number with few significant digits."""
    return rounded(value, digits)


def _amount(value: float, unit: str) -> str:
    return amount(short(value), unit)


def joined(parts: Sequence[str]) -> str:
    """Return parts of a sentence with commas and a last "and"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def away(result: RegionResult) -> str:
    """Return how far outside of the area the paper's own point lies; empty if it lies inside."""
    parts = list(_away(result.axes))
    if not parts:
        return ""
    words = f"The paper’s own point lies outside of this area: {joined(parts)}."
    for law in result.laws_at_paper:
        words += f" There {law.title} gives {figure(short(law.share))} of the link."
    return words


def _away(axes: Sequence[AxisRow]) -> Iterator[str]:
    for axis in axes:
        title = lower(axis.title)
        unit = axis.unit
        paper = axis.paper
        if paper is None:
            yield f"it has no {title}"
            continue
        position = axis.span().position(paper)
        if 0 <= position <= 1:
            continue
        is_above = position > 1
        end = axis.high if is_above else axis.low
        factor = paper / end if is_above else end / paper
        times = f", {figure(short(factor))} times {'less' if is_above else 'more'}"
        ends = "ends" if is_above else "begins"
        distance = times if axis.log else ""
        yield f"{title} {amount(paper, unit)} (the area {ends} at {amount(end, unit)}{distance})"


def scale_words(axes: Sequence[AxisRow]) -> str:
    """Return how the area is measured, such as "on logarithmic axes"."""
    logarithmic = [lower(axis.title) for axis in axes if axis.log]
    if len(logarithmic) == len(axes):
        return "on logarithmic axes"
    return f"with {logarithmic[0]} on a logarithmic axis" if logarithmic else "on linear axes"


class LawRow(NamedTuple):
    """BBR's share of the link beside a rival in one buffer, by the end of the run, and the law."""

    rival: str
    buffer_bdp: float
    shares: dict[int, float]
    law: float
    queue_share: float


class LawRuns(NamedTuple):
    """Runs that are as long as those of the law's authors, and what differs from the law."""

    rows: list[LawRow]
    ends_s: list[int]
    words: str

    @property
    def columns(self) -> list[str]:
        """The headings of its table."""
        ends = [f"#After {end} s" for end in self.ends_s]
        return ["Other flow", "#Buffer (BDP)", *ends, "#Law", "#Buffer full"]


def law_runs(root: Path) -> LawRuns | None:
    """Return the runs of data/bbr_shares.csv; None without the file."""
    if not (root / BBR_SHARES).is_file():
        return None
    rows = []
    table = read_rows(root / BBR_SHARES, BBR_SHARE_COLUMNS)
    for same in grouped(table, "rival", "buffer_bdp").values():
        last = same[-1]
        shares = {int(row["until_s"]): float(row["bbr_share"]) for row in same}
        numbers = (float(last["law"]), float(last["queue_share"]))
        rows.append(LawRow(last["rival"], float(last["buffer_bdp"]), shares, *numbers))
    ends_s = sorted(rows[0].shares)
    first, last_s = ends_s[0], ends_s[-1]
    rises = [row.shares[last_s] - row.shares[first] for row in rows]
    early = [row.law - row.shares[first] for row in rows]
    late = [row.law - row.shares[last_s] for row in rows]
    queues = [row.queue_share for row in rows]
    words = (
        f"After {first} s BBR’s share is {_span(early)} below the law, after {last_s} s "
        f"{_span(late)}. From the one to the other it rises by {_span(rises)}. So the length of a "
        "run is a part of the difference and not all of it; what the rest comes from is not known. "
        f"The law assumes that the buffer is always full; on average it is {_span(queues)} full "
        "here, and no run has tested whether that is the reason."
    )
    return LawRuns(rows, ends_s, words)


def _span(values: Sequence[float]) -> str:
    ends = dict.fromkeys(f"{value:.2f}".replace("-", "−") for value in (min(values), max(values)))
    return " to ".join(ends)
