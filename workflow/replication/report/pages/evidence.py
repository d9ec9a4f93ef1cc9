"""Why a study's verdicts are as they are, and how robust: from what `make explain` wrote.

`explanation_of` is what other pages take: sentences for a summary, texts for a second column.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from replication.explore import explanation
from replication.explore.design_point import ONE_AT_A_TIME
from replication.explore.explanation import EXPLAINED_COLUMNS, NAME, NONE_FOUND, holding
from replication.explore.robustness import claim_sentence
from replication.explore.study import (
    SOURCES,
    RobustnessRows,
    is_current,
    read_made_from,
)
from replication.report.charts.data import display_metric
from replication.report.charts.figure import (
    PALETTE,
    WIDTH,
    Figure,
    colours,
    make_figure,
    three_digits,
)
from replication.report.pages.figure import write_figures
from replication.report.pages.ledger import plain, plausible
from replication.study.files import read_json
from replication.study.sensitivity_settings import Scale, load_sensitivity
from replication.study.storage.table import Row, read_rows
from replication.study.study import Study
from replication.study.variation import Assumption, assumptions
from replication.study.verdict import Verdict

#: Tables, or near misses, that a sentence names.
_NAMED = 3


@dataclass(frozen=True)
class Explanation:
    """What is said of a study's best explanation, and each number under it.

    Texts are for a table: at the defaults and under the explanation; empty where there are none.
    """

    word: str
    sentences: tuple[str, str]
    inside: str
    median: str
    claims: str
    unseen: str
    #: All that was written of it.
    document: Mapping[str, Any]
    cells: list[Row]

    @property
    def is_found(self) -> bool:
        """Whether anything is called an explanation or a guess."""
        return self.word != NONE_FOUND


def explanation_of(root: Path, data: Path, study: Study) -> Explanation | None:
    """Return a study's explanation; None where none was searched on the files as they are now."""
    folder = data / "sensitivity" / study.id
    if not (folder / NAME).is_file():
        return None
    document = read_json(folder / NAME)
    if not explanation.is_current(root, data, document):
        return None
    cells = read_rows(folder / "explained_cells.csv", EXPLAINED_COLUMNS)
    counts = (_sum(document, what) for what in ("before", "after", "cells"))
    inside = "{} to {} of {}".format(*counts)
    return Explanation(
        document["word"],
        (_first(document), _second(document, cells)),
        inside if document["score"] == "cells" else "",
        _median(document),
        f"{holding(document['claims_before'])} to {holding(document['claims_after'])}"
        f" of {len(document['claims_after'])}",
        f"{document['unseen']['before']} to {document['unseen']['after']}"
        f" of {document['unseen']['cells']}",
        document,
        cells,
    )


def title_of(atom: Mapping[str, Any]) -> str:
    """Return what a change says, with its value where its title has none, and its one table."""
    title, (_, _, table) = str(atom["title"]), atom["atom"].partition("@")
    if atom["kind"] == "set-up" and title == atom["atom_title"]:
        title = f"{title} ({atom['level']})"
    return f"{title} (table {table} alone)" if table else title


def _sum(document: Mapping[str, Any], what: str) -> int:
    """Return a count over what was seen and what was not."""
    return int(document["seen"][what] + document["unseen"][what])


def _median(document: Mapping[str, Any]) -> str:
    """Return the median deviation of the numbers seen, defaults to explanation."""
    before, after = (document["seen"][f"median_{when}"] for when in ("before", "after"))
    return "" if after is None else f"{100 * before:.2g} % to {100 * after:.2g} %"


def _first(document: Mapping[str, Any]) -> str:
    """Return what is met, and under which changes."""
    tried = (
        f"by a search over {document['set_ups_tried']} set-ups of "
        f"{len(document['atoms_tested'])} possible causes"
    )
    if document["word"] == NONE_FOUND:
        why = " ".join(document["reasons"])
        return f"No explanation is found {tried}. {why}".strip()
    what = "numbers are inside" if document["score"] == "cells" else "claims hold together"
    median = _median(document)
    off = f"; median deviation {median} of those seen" if median else ""
    inside, of = _sum(document, "after"), _sum(document, "cells")
    stated = f"(defaults {_sum(document, 'before')}{off})"
    titles = "; ".join(title_of(one) for one in document["atoms"])
    return (
        f"{document['word'].capitalize()}: {inside} of {of} {what} {stated} if: {titles}. "
        f"Found afterwards, {tried}."
    )


def _second(document: Mapping[str, Any], cells: list[Row]) -> str:
    """Return how it does on what was not seen, and what stays unexplained."""
    unseen = document["unseen"]
    what = "numbers" if document["score"] == "cells" else "claims"
    if document["word"] == NONE_FOUND:
        near = document["nearest"][0]["atoms"] if document["nearest"] else []
        named = ", ".join(f"{atom}={level}" for atom, level in near) or "the documented defaults"
        return f"The nearest miss: {named}."
    sentence = (
        f"Of {unseen['cells']} {what} that the search did not see {unseen['after']} "
        f"{'are inside' if what == 'numbers' else 'hold'} (defaults {unseen['before']})"
    )
    outside = Counter(row["table"] for row in cells if row["inside"] != "true")
    if outside:
        named = ", ".join(f"{count} of table {t}" for t, count in outside.most_common(_NAMED))
        sentence += f"; what stays unexplained: {named}"
    before, after = document["impossible"]["before"], document["impossible"]["after"]
    if before or after:
        sentence += (
            f"; printed numbers that break a bound of the set-up: {before} as stated, "
            f"{after} under it"
        )
    if not document["identified"]:
        sentence += "; not identified: other changes do as well"
    return sentence + "."


def why_view(root: Path, data: Path, study: Study, out: Path) -> dict[str, Any] | None:
    """Return the section, its chart written below `out`; None where nothing was searched."""
    found = explanation_of(root, data, study)
    if found is None:
        return None
    document = found.document
    figures = []
    if found.is_found and document["leaving"]:
        titles = {(one["atom"], one["level"]): title_of(one) for one in document["atoms"]}
        named = [titles[one["atom"], one["level"]] for one in document["leaving"]]
        figures = [waterfall(study.id, document["leaving"], named)]
    return {
        "explanation": found,
        "figures": write_figures(figures, out),
        # Changes in words, and by how many bits they are worse.
        "equally_good": [_scored(one) for one in document["equally_good"][1:]],
        "nearest": [_scored(one) for one in document["nearest"]],
        "never_together": [_apart(pair) for pair in document["never_together"]],
        "beside_traces": _beside_traces(document.get("distances", [])),
    }


def _beside_traces(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return how near runs come to the raw traces, by metric.

    How many published flows there are and are nearer under the explanation; medians of the distance
    at the defaults, under it, and between the traces' own flows of one kind.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["metric"], []).append(row)
    return [
        {
            "metric": metric,
            "unit": own[0]["unit"],
            "flows": len(own),
            "nearer": sum(row["after"] < row["before"] for row in own),
            **{what: _median_of(own, what) for what in ("before", "after", "own")},
        }
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


def robust_view(root: Path, data: Path, study: Study, out: Path) -> dict[str, Any] | None:
    """Return the section, its figures written below `out`; None where there is nothing to say.

    Where results exist that were made from other files, they are ``stale`` and nothing is shown.
    """
    folder = data / "sensitivity" / study.id
    if not (folder / "claims.csv").is_file():
        return None
    if not is_current(root, data, study.id):
        return {"stale": True}
    rows = RobustnessRows.load(folder)
    settings = load_sensitivity(root)
    scale, engine = settings.of(study.id).exploration, read_made_from(folder)["engine"]
    claims = {claim.id: claim for claim in study.claims}
    known = [(claims[row["claim"]], row) for row in rows.claims]
    return {
        "stale": False,
        "engine": engine,
        # Why that is not the paper's own system; empty if it is.
        "engine_note": settings.engine_note(study, engine),
        "points": list(Counter(row["kind"] for row in rows.points).items()),
        "left_out": list(_left_out(study, scale)),
        "scale": scale,
        "words": Counter(row["word"] for row in rows.claims).most_common(),
        "claims": [(claim, row, claim_sentence(row, claim, scale)) for claim, row in known],
        "effects": [_effect(a, rows, settings.of(study.id).held) for a in assumptions(study)],
        "figures": write_figures(spread_figures(rows.spread, study.id), out),
        # Whether the charts of what varies have other engines too.
        "engines_compared": bool((rows.spread["source"] == SOURCES["engine"]).any()),
    }


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


def _effect(
    assumption: Assumption, rows: RobustnessRows, held: Mapping[str, str]
) -> dict[str, Any]:
    """Return an assumption, the claims that it flips alone, and those that it decides."""
    key = assumption.key
    own = [r for r in rows.effects if r["parameter"] == key and r["method"] == ONE_AT_A_TIME]
    flips = dict.fromkeys(
        row["claim"]
        for row in own
        if (row["before"] == Verdict.REPRODUCED) != (row["after"] == Verdict.REPRODUCED)
        and Verdict.NOT_TESTABLE not in (row["before"], row["after"])
    )
    why = "" if own else held.get(key, "Not varied: no alternative, or an experiment left out.")
    return {
        "key": key,
        "default": plain(assumption.default),
        "plausible": plausible(assumption.tag, assumption.unit),
        "not_varied": why,
        "flips": [*flips],
        "decides": [r["claim"] for r in rows.claims if key in r["important"].split("; ")],
    }


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
