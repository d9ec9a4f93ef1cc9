"""Sentences on regions: borders as numbers, the distance of the paper's own point, and the law."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from replication.explore.regions.border import Row, State, Stretch, range_of, told_rows
from replication.metrics.metric_model import display_unit as unit_of
from replication.report.pages.shown import amount
from replication.study.study import BBR_SHARES
from replication.study.table import BBR_SHARE_COLUMNS, grouped, read_rows
from replication.study.variation import rounded
from replication.verdicts.wording import figure, lower

_Result = Mapping[str, Any]
#: A row with more stretches that are decided has no border that a reader can use.
_MOST_STRETCHES = 4
_VERBS = {
    State.HOLDS: "it holds",
    State.FAILS: "it fails",
    State.CANNOT_DIFFER: "the alternatives cannot differ",
}


def border_sentences(found: _Result, panel: _Result) -> list[str]:
    """Return where a claim holds along the axis x as sentences, one for each row that is told."""
    rows = told_rows(found, panel)
    y = found["axes"][1]
    everywhere = f"Every {lower(y['title'])}"
    sentences = []
    for row in rows:
        where = everywhere if len(rows) == 1 else f"{y['title']} {_amount(row.y, y['unit'])}"
        sentences.append(f"{where}: {_row(found, row, has_sizes=not panel['ties'])}.")
    return sentences


def _row(found: _Result, row: Row, has_sizes: bool) -> str:
    decided = [one for one in row.stretches if one.state != State.UNDECIDED]
    if not decided:
        return "it is undecided"
    rest = "; the rest is undecided" if len(decided) < len(row.stretches) else ""
    states = {one.state for one in decided}
    if len(decided) > 1 and len(states) == 1:
        return f"{_VERBS[decided[0].state]} wherever it is known{rest}"
    if len(decided) > _MOST_STRETCHES:
        return "there is no single border"
    return joined([_stretch(found, one, has_sizes) for one in decided]) + rest


def _stretch(found: _Result, one: Stretch, has_sizes: bool) -> str:
    x = found["axes"][0]
    if one.low is None and one.high is None:
        place = f"at every {lower(x['title'])}"
    elif one.low is None:
        place = f"below {_amount(one.high or 0.0, x['unit'])}"
    elif one.high is None:
        place = f"above {_amount(one.low, x['unit'])}"
    else:
        low = figure(short(one.low * unit_of(x["unit"])[1]))
        place = f"from {low} to {_amount(one.high, x['unit'])}"
    shows_size = has_sizes and one.state == State.FAILS
    return f"{_VERBS[one.state]} {place}{_size(found['measure'], one) if shows_size else ''}"


def _size(measure: _Result, one: Stretch) -> str:
    """Return the range of the compared quantity, such as " (ratio 1.29 to 13.1)"."""
    values = (one.least * measure["factor"], one.most * measure["factor"])
    ends = dict.fromkeys(figure(short(value, digits=3)) for value in values)
    return f" ({measure['noun']} {' to '.join(ends)} {measure['unit']}".rstrip() + ")"


def short(value: float, digits: int = 2) -> float:
    """Return a number with few significant digits."""
    return rounded(value, digits)


def _amount(value: float, unit: str) -> str:
    return amount(short(value), unit)


def joined(parts: Sequence[str]) -> str:
    """Return parts of a sentence with commas and a last "and"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def away(found: _Result) -> str:
    """Return how far outside of the area the paper's own point lies; empty if it lies inside."""
    parts = list(_away(found["axes"]))
    if not parts:
        return ""
    laws = [
        f" There {law['title']} gives {figure(short(law['share']))} of the link."
        for law in found["laws_at_paper"]
    ]
    return f"The paper’s own point lies outside of this area: {joined(parts)}.{''.join(laws)}"


def _away(axes: Sequence[_Result]) -> Iterator[str]:
    for axis in axes:
        title, unit, own = lower(axis["title"]), axis["unit"], axis["paper"]
        if own is None:
            yield f"it has no {title}"
            continue
        position = range_of(axis).position(own)
        if 0 <= position <= 1:
            continue
        is_above = position > 1
        end = axis["high"] if is_above else axis["low"]
        factor = own / end if is_above else end / own
        times = f", {figure(short(factor))} times {'less' if is_above else 'more'}"
        ends = "ends" if is_above else "begins"
        distance = times if axis["log"] else ""
        yield f"{title} {amount(own, unit)} (the area {ends} at {amount(end, unit)}{distance})"


def scale_words(axes: Sequence[_Result]) -> str:
    """Return how the area is measured, such as "on logarithmic axes"."""
    logarithmic = [lower(axis["title"]) for axis in axes if axis["log"]]
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
