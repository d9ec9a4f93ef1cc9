"""How robust a study's verdicts are, and why they differ: the sections of its page, with charts."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from replication.report.charts.data import display_metric
from replication.report.charts.figure import (
    PALETTE,
    WIDTH,
    Figure,
    colours,
    make_figure,
    three_digits,
)
from replication.report.pages.explanation import Explanation, explanation_of, title_of
from replication.report.pages.figure import FigureView, write_figures
from replication.report.pages.ledger import plain, plausible
from replication.sensitivity.design_point import ONE_AT_A_TIME
from replication.sensitivity.explore_study import (
    SOURCES,
    RobustnessRows,
    is_current,
    read_made_from,
)
from replication.sensitivity.robustness import claim_sentence
from replication.study.claim_model import Claim
from replication.study.sensitivity_settings import Scale, load_sensitivity
from replication.study.storage.table import Row
from replication.study.study import Study
from replication.study.variation import Assumption, assumptions
from replication.study.verdict import Verdict


@dataclass(frozen=True)
class EffectView:
    """An assumption and what it does: claims that it flips alone, claims that it decides."""

    key: str
    default: str
    plausible: str
    not_varied: str
    flips: list[str]
    decides: list[str]


@dataclass(frozen=True)
class RobustView:
    """The section.

    Attributes
    ----------
    stale
        Whether results exist that were made from other files; then nothing else is shown.
    engine, engine_note
        What it ran on, and why that is not the paper's own system; empty if it is.
    claims
        Each with its row, which has its word, and the sentence behind that.
    points
        Kind of design point to how many there are.
    engines_compared
        Whether the charts of what varies have other engines too.
    left_out
        Title of each experiment that was not explored, and the claims that need it.
    """

    stale: bool = False
    engine: str = ""
    engine_note: str = ""
    points: tuple[tuple[str, int], ...] = ()
    left_out: tuple[tuple[str, list[str]], ...] = ()
    scale: Scale | None = None
    words: tuple[tuple[str, int], ...] = ()
    claims: tuple[tuple[Claim, Row, str], ...] = ()
    effects: tuple[EffectView, ...] = ()
    figures: tuple[FigureView, ...] = ()
    engines_compared: bool = False


def robust_view(root: Path, data: Path, study: Study, out: Path) -> RobustView | None:
    """Return the section, its figures written below `out`; None where there is nothing to say.

    Parameters
    ----------
    root, data
        The project's folder and that of the results.
    study
        Whose page it is.
    out
        The report's folder.
    """
    folder = data / "sensitivity" / study.id
    if not (folder / "claims.csv").is_file():
        return None
    if not is_current(root, data, study.id):
        return RobustView(stale=True)
    rows = RobustnessRows.load(folder)
    settings = load_sensitivity(root)
    scale = settings.of(study.id).exploration
    engine = read_made_from(folder)["engine"]
    return RobustView(
        engine=engine,
        engine_note=settings.engine_note(study, engine),
        points=tuple(Counter(row["kind"] for row in rows.points).items()),
        left_out=tuple(_left_out(study, scale)),
        scale=scale,
        words=tuple(Counter(row["word"] for row in rows.claims).most_common()),
        claims=tuple(_claims(study, rows, scale)),
        effects=tuple(_effect(a, rows, settings.of(study.id).held) for a in assumptions(study)),
        figures=tuple(write_figures(spread_figures(rows.spread, study.id), out)),
        engines_compared=bool((rows.spread["source"] == SOURCES["engine"]).any()),
    )


def _claims(study: Study, rows: RobustnessRows, scale: Scale) -> Iterator[tuple[Claim, Row, str]]:
    claims = {claim.id: claim for claim in study.claims}
    for row in rows.claims:
        claim = claims[row["claim"]]
        yield claim, row, claim_sentence(row, claim, scale)


def _left_out(study: Study, scale: Scale) -> Iterator[tuple[str, list[str]]]:
    """Yield the experiments that the exploration leaves out, and the claims that need them."""
    for experiment in study.experiments:
        if scale.experiments is not None and experiment.id not in scale.experiments:
            claims = [
                claim.id
                for claim in study.claims
                if experiment.id in {wanted.experiment for wanted in claim.quantities()}
            ]
            yield experiment.title, claims


def _effect(assumption: Assumption, rows: RobustnessRows, held: Mapping[str, str]) -> EffectView:
    key = assumption.key
    own = [r for r in rows.effects if r["parameter"] == key and r["method"] == ONE_AT_A_TIME]
    flips = dict.fromkeys(
        row["claim"]
        for row in own
        if _holds(row["before"]) != _holds(row["after"])
        and Verdict.NOT_TESTABLE not in (row["before"], row["after"])
    )
    decides = [row["claim"] for row in rows.claims if key in row["important"].split("; ")]
    why = "" if own else held.get(key, "Not varied: no alternative, or an experiment left out.")
    return EffectView(
        key=key,
        default=plain(assumption.default),
        plausible=plausible(assumption.tag, assumption.unit),
        not_varied=why,
        flips=[*flips],
        decides=decides,
    )


def _holds(verdict: str) -> bool:
    return verdict == Verdict.REPRODUCED


@dataclass(frozen=True)
class BesideTraces:
    """How near runs come to the raw traces, by one metric.

    Attributes
    ----------
    metric, unit
        What is compared.
    flows, nearer
        How many published flows, and how many of them are nearer under the explanation.
    before, after, own
        Median Wasserstein distance at the defaults, under the explanation, and between the traces'
        own flows of one kind.
    """

    metric: str
    unit: str
    flows: int
    nearer: int
    before: float | None
    after: float | None
    own: float | None


@dataclass(frozen=True)
class WhyView:
    """The section.

    Attributes
    ----------
    explanation
        What is said.
    figure
        Its waterfall; None where nothing is found.
    equally_good, nearest
        Changes in words, and by how many bits they are worse.
    never_together
        Claims that no set-up has both of, in sentences.
    beside_traces
        Of each metric: how near runs come to the distributions of the raw traces.
    """

    explanation: Explanation
    figure: FigureView | None
    equally_good: list[tuple[str, float]]
    nearest: list[tuple[str, float]]
    never_together: list[str]
    beside_traces: list[BesideTraces]


def why_view(root: Path, data: Path, study: Study, out: Path) -> WhyView | None:
    """Return the section, its chart written below `out`; None where nothing was searched.

    Parameters
    ----------
    root, data
        The project's folder and that of the results.
    study
        Whose page it is.
    out
        The report's folder.
    """
    found = explanation_of(root, data, study)
    if found is None:
        return None
    document = found.document
    figures = []
    if found.is_found and document["leaving"]:
        titles = {(one["atom"], one["level"]): title_of(one) for one in document["atoms"]}
        named = [titles[one["atom"], one["level"]] for one in document["leaving"]]
        figures = write_figures([waterfall(study.id, document["leaving"], named)], out)
    return WhyView(
        found,
        figures[0] if figures else None,
        [_scored(one) for one in document["equally_good"][1:]],
        [_scored(one) for one in document["nearest"]],
        [_apart(pair) for pair in document["never_together"]],
        _beside_traces(document.get("distances", [])),
    )


def _beside_traces(rows: Sequence[Mapping[str, Any]]) -> list[BesideTraces]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["metric"], []).append(row)
    return [
        BesideTraces(
            metric,
            own[0]["unit"],
            len(own),
            sum(row["after"] < row["before"] for row in own),
            *(_median_of(own, what) for what in ("before", "after", "own")),
        )
        for metric, own in found.items()
    ]


def _median_of(rows: Sequence[Mapping[str, Any]], what: str) -> float | None:
    known = [row[what] for row in rows if row[what] is not None]
    return statistics.median(known) if known else None


def _scored(one: Mapping[str, Any]) -> tuple[str, float]:
    named = ", ".join(f"{atom}={level}" for atom, level in one["atoms"])
    return named or "the documented defaults", float(one["worse_by_bits"])


def _apart(pair: Mapping[str, Any]) -> str:
    return (
        f"{pair['one']} holds in {pair['holds_one']} and {pair['other']} in "
        f"{pair['holds_other']} of {pair['set_ups']} set-ups, both in none "
        f"({pair['expected']:.1f} expected if they had nothing to do with one another)."
    )


def spread_figures(spread: pd.DataFrame, study: str) -> list[Figure]:
    """Return a chart for each headline metric that changed at all; none where nothing was run."""
    found = []
    for metric in dict.fromkeys(spread["metric"]):
        rows = spread[spread["metric"] == metric]
        if (rows["change"].abs() > 0).any():
            found.append(_figure(rows, str(metric), study))
    return found


def _figure(rows: pd.DataFrame, metric: str, study: str) -> Figure:
    relative = bool((rows["unit"] == "relative").all())
    shown = rows[["experiment", "source", "point", "change"]].copy()
    if relative:
        shown["change"] = 100 * shown["change"]
    unit = "%" if relative else "difference"
    order = [source for source in SOURCES.values() if source in set(shown["source"])]
    axis = alt.X(
        "change:Q", title=f"Change from the defaults ({unit}), median over flows and points"
    )
    marks = alt.Chart(shown).mark_tick(thickness=1.5, size=16, opacity=0.75)
    chart = marks.encode(
        x=axis,
        y=alt.Y("source:N", sort=order, title=None),
        color=colours("source", order),
        row=alt.Row("experiment:N", title=None),
        tooltip=["experiment", "source", "point", alt.Tooltip("change:Q", format=".3g")],
    ).properties(width=WIDTH, height=26 * len(order))
    name = display_metric(metric).label
    return make_figure(
        (study, "", "spread", metric),
        f"What varies: {name}",
        chart,
        _description(shown, order, name, unit),
        shown.reset_index(drop=True),
    )


def _description(shown: pd.DataFrame, order: list[str], name: str, unit: str) -> str:
    parts = []
    for source in order:
        change = shown.loc[shown["source"] == source, "change"]
        parts.append(f"{source} {three_digits(change.min())} to {three_digits(change.max())}")
    return (
        f"{name}, change from its value at the defaults ({unit}): {'; '.join(parts)}. One tick a "
        "design point and experiment."
    )


_ROW = 34


def waterfall(study: str, leaving: Sequence[Mapping[str, Any]], titles: Sequence[str]) -> Figure:
    """Return the chart of what leaving each change out costs.

    Parameters
    ----------
    study
        The study's id.
    leaving
        Of each change: `bits` that the description gets longer, and numbers or claims `inside`
        without it.
    titles
        What the changes say, in their order.
    """
    rows = pd.DataFrame(
        {
            "change": list(titles),
            "bits": [float(one["bits"]) for one in leaving],
            "inside_without_it": [int(one["inside"]) for one in leaving],
        }
    ).sort_values("bits", ascending=False, ignore_index=True, kind="stable")
    order = list(rows["change"])
    chart = (
        alt.Chart(rows)
        .mark_bar(color=PALETTE[0])
        .encode(
            x=alt.X("bits:Q", title="Bits that the description gets longer without it"),
            y=alt.Y("change:N", sort=order, title=None, axis=alt.Axis(labelLimit=WIDTH // 2)),
            tooltip=[
                alt.Tooltip("change:N", title="Change"),
                alt.Tooltip("bits:Q", title="Bits", format=".3g"),
                alt.Tooltip("inside_without_it:Q", title="Inside without it"),
            ],
        )
        .properties(width=WIDTH, height=_ROW * len(rows))
    )
    worth = "; ".join(f"{row.change}: {row.bits:.3g} bits" for row in rows.itertuples())
    return make_figure(
        (study, "", "why", "waterfall"),
        "What each change is worth: all others stay, and it is left out",
        chart,
        f"{worth}. A change that is worth nothing would not be part of the explanation.",
        rows,
    )
