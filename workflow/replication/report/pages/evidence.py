"""Why a study's verdicts are as they are, how robust, and its published traces beside ours.

What `make explain` wrote, and the comparison of windows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from replication.compare.raw_samples import SAMPLES
from replication.compare.trace_comparison import COMPARISON, NEARNESS, RAW, WINDOWS
from replication.design.config import load_sensitivity
from replication.explore import explanation
from replication.explore.explanation import EXPLAINED_COLUMNS, NAME, NONE_FOUND
from replication.explore.finding import holding
from replication.explore.robustness import is_current, read_input_hashes, robustness_table
from replication.metrics.cwnd import LABELS
from replication.metrics.metric_model import display_unit
from replication.report.charts import figure as draw
from replication.report.charts.figure import Figure
from replication.report.charts.time import trace_figures
from replication.report.pages.page import write_figures
from replication.report.pages.shown import significant
from replication.report.pages.source import Source, grouped, of_study
from replication.study.files import read_json
from replication.study.storage.table import (
    TRACE_COLUMNS,
    TRACE_SAMPLE_COLUMNS,
    Row,
    read_frame,
    read_parquet,
    read_rows,
)
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.cause import Cause, load_explanations
from replication.verdicts.wording import table_names


def explanation_of(root: Path, data: Path, study: Study) -> dict[str, Any] | None:
    """Return a study's explanation; None where none was searched on the files as they are now.

    It is the document that was written, with the numbers under it and what pages count of them.
    """
    folder = data / "sensitivity" / study.id
    if not (folder / NAME).is_file():
        return None
    document: dict[str, Any] = read_json(folder / NAME)
    if not explanation.is_current(root, data, document):
        return None
    rows = read_rows(folder / "explained_cells.csv", EXPLAINED_COLUMNS)
    sides = [document[f"claims_{when}"] for when in ("before", "after")]
    names = table_names(study)
    decided = {claim for one in sides for claim, v in one.items() if v != Verdict.NOT_TESTABLE}
    tested = decided & {claim.id for claim in study.claims if claim.is_counted}
    known = load_explanations(root, study.id)
    causes = known.by_id if known else {}
    return document | {
        "is_found": document["result"] != NONE_FOUND,
        "rows": rows,
        "titles": [title_of(one, causes) for one in document["causes"]],
        "total": {
            what: int(document["seen"][what] + document["held_out"][what])
            for what in ("before", "after", "cells")
        },
        # How many claims hold at the defaults, under it, and of how many that were tested.
        "holding": [*(holding(verdicts, tested) for verdicts in sides), len(tested)],
        "outside": Counter(
            names.get(row["table"], row["table"]) for row in rows if row["matches"] != "true"
        ).most_common(3),
    }


def title_of(change: Mapping[str, Any], causes: Mapping[str, Cause]) -> str:
    """Return what a change says, with the number where its title has none, and its one table."""
    name, _, table = change["cause"].partition("@")
    number = number_of(causes[name], change["level"]) if name in causes else ""
    title = f"{change['title']} ({number})" if number else str(change["title"])
    return f"{title} (table {table} alone)" if table else title


def number_of(cause: Cause, level: str) -> str:
    """Return the number that a cause sets at a level, with its unit; empty where a title has it."""
    own = next((one for one in cause.levels or [] if one.key == level), None)
    if own is not None and (own.title or own.set is None or len(cause.levels or []) == 1):
        return ""
    changed = own.set if own else cause.set
    assert changed is not None
    # Names end in their unit; a probability has none.
    found = re.search(rf'"(\w+)":("\$value"|{re.escape(level)}\b)', changed.model_dump_json())
    named, _, end = found[1].rpartition("_") if found else ("", "", "")
    if not named:
        return f"{end} {level}".strip()
    unit, factor = display_unit({"bps": "bit/s"}.get(end, end))
    return f"{significant(float(level) * factor)} {unit}"


def why_view(root: Path, data: Path, study: Study, out: Path) -> dict[str, Any] | None:
    """Return the section, its chart written below `out`; None where nothing was searched."""
    found = explanation_of(root, data, study)
    if found is None:
        return None
    leaving, figures = found["leaving"], []
    if found["is_found"] and leaving:
        causes = [(one["cause"], one["level"]) for one in found["causes"]]
        titles = dict(zip(causes, found["titles"], strict=True))
        named = [titles[one["cause"], one["level"]] for one in leaving]
        figures = write_figures([waterfall(study.id, leaving, named)], out)
    return {"found": found, "figures": figures}


def varied_claims(source: Source, study: Study) -> tuple[list[Row], list[str]]:
    """Return the robustness of the claims that count and can be tested, and the other claims."""
    rows = robustness_table(source.data / "sensitivity" / study.id, "claims")
    counted = {claim.id for claim in study.claims if claim.is_counted}
    untested = {
        (row["claim"], row["engine"])
        for row in of_study(source.claims, study.id)
        if row["verdict"] == Verdict.NOT_TESTABLE
    }
    kept = [
        row
        for row in rows
        if row["claim"] in counted
        and not untested & {(row["claim"], engine) for engine in ("", row["engine"])}
    ]
    return kept, [row["claim"] for row in rows if row not in kept]


def robust_view(source: Source, study: Study) -> dict[str, Any] | None:
    """Return the section; None where there is nothing to say.

    Where results exist that were made from other files, they are ``stale`` and nothing is shown.
    """
    folder = source.data / "sensitivity" / study.id
    if not (folder / "claims.csv").is_file():
        return None
    if not is_current(source.root, source.data, study.id):
        return {"stale": True}
    points = robustness_table(folder, "points")
    rows, apart = varied_claims(source, study)
    settings = load_sensitivity(source.root)
    scale, engine = settings.of(study.id).exploration, read_input_hashes(folder)["engine"]
    claims = {claim.id: claim for claim in study.claims}
    return {
        "stale": False,
        "engine": engine,
        # Why that is not the paper's own system; empty if it is.
        "engine_note": settings.engine_note(study, engine),
        "points": list(Counter(row["kind"] for row in points).items()),
        # Experiments that the exploration leaves out, and the claims that need them.
        "left_out": [
            (
                one.title,
                [c.id for c in study.claims if one.id in {q.experiment for q in c.quantities()}],
            )
            for one in study.experiments
            if scale.experiments is not None and one.id not in scale.experiments
        ],
        # Claims that cannot be tested today, or repeat another.
        "apart": apart,
        "scale": scale,
        "words": Counter(row["word"] for row in rows if row["designs"] != "0").most_common(),
        "claims": [(claims[row["claim"]], row) for row in rows],
    }


def waterfall(study: str, leaving: Sequence[Mapping[str, Any]], titles: Sequence[str]) -> Figure:
    """Return the chart of what leaving each change out costs.

    Of each change `leaving` has the `bits` that the description gets longer, and how many numbers
    or claims have `matches` without it; `titles` are what the changes say.
    """
    rows = pd.DataFrame(
        {
            "change": list(titles),
            "bits": [float(one["bits"]) for one in leaving],
            "matches_without_it": [int(one["matches"]) for one in leaving],
        }
    ).sort_values("bits", ascending=False, ignore_index=True, kind="stable")
    bars = alt.Chart(rows).mark_bar(color=draw.PALETTE[0])
    labels = alt.Axis(labelLimit=380)
    chart = bars.encode(
        x=alt.X("bits:Q", title="Bits that the description gets longer without it"),
        y=alt.Y("change:N", sort=list(rows["change"]), title=None, axis=labels),
        tooltip=[
            *draw.tips("N", change="Change"),
            *draw.tips("Q", ".3g", bits="Bits"),
            *draw.tips("Q", matches_without_it="Matches without it"),
        ],
    ).properties(width=draw.WIDTH, height=34 * len(rows))
    worth = "; ".join(f"{row.change}: {row.bits:.3g} bits" for row in rows.itertuples())
    return draw.make_figure(
        (study, "", "why", "waterfall"),
        "What each change is worth: all others stay, and it is left out",
        chart,
        f"{worth}. A change that is worth nothing would not be part of the explanation.",
        rows,
    )


FILES = (COMPARISON, NEARNESS, SAMPLES)


def trace_rows(source: Source, study: Study) -> list[Row]:
    """Return the study's rows of the comparison; none where it was not made."""
    path = source.data / COMPARISON
    return of_study(read_rows(path, TRACE_COLUMNS), study.id) if path.is_file() else []


def figures_of_traces(source: Source, study: Study) -> dict[str, list[Figure]]:
    """Return the figure of a study's traces by experiment; none where nothing was compared."""
    rows = trace_rows(source, study)
    if not rows:
        return {}
    windows = read_parquet(source.data / WINDOWS).to_pandas()
    comparison = read_frame(source.data / COMPARISON)
    windows, comparison = (one[one["study"] == study.id] for one in (windows, comparison))
    engine = source.headlines[study.id].engine
    found = {}
    for (experiment,), own in grouped(rows, "experiment").items():
        traces = list(dict.fromkeys(row["trace"] for row in own))
        drawn = trace_figures(windows, comparison, traces, engine)
        found[experiment] = draw.with_prefix(drawn, study.id, experiment)
    return found


def trace_section(source: Source, study: Study) -> dict[str, Any] | None:
    """Gather the section; None where no trace of the study was compared."""
    rows = trace_rows(source, study)
    if not rows:
        return None
    ran = {row["engine"] for row in rows}
    by_trace = {name: own for (name,), own in grouped(rows, "trace").items()}
    return {
        "engines": [engine for engine in source.shown_engines(study.id) if engine in ran],
        "traces": [
            # Each number by engine.
            (
                name,
                f"compared={draw.name_of(name)}",
                [
                    {row["engine"]: row for row in same}
                    for same in grouped(own, "flow", "metric").values()
                ],
            )
            for name, own in by_trace.items()
        ],
        "samples": _samples(source, study),
        "missing": [name for name, own in by_trace.items() if own[0]["evidence"] != RAW],
        "labels": LABELS,
    }


def _samples(source: Source, study: Study) -> list[Row]:
    """Return the published first samples beside those of the study's primary engine."""
    path = source.data / SAMPLES
    rows = of_study(read_rows(path, TRACE_SAMPLE_COLUMNS), study.id) if path.is_file() else []
    return [row for row in rows if row["engine"] in source.shown_engines(study.id)[:1]]
