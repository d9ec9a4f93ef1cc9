"""A study's page: its experiments with claims, tables and figures, as the template needs them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from replication.metrics.results import Results
from replication.report.charts.data import level_label, levels_in_brief, unsaid_unit
from replication.report.charts.figure import Figure
from replication.report.charts.topology import topology_lines
from replication.report.pages.cell_table import CellView, TableView, table_views
from replication.report.pages.claim import claim_cards
from replication.report.pages.source import PointLinks, Source, grouped, of_study, point_links
from replication.report.pages.verdict import answer
from replication.study.parameter import Factor
from replication.study.storage.table import Row
from replication.study.study import Experiment, Study
from replication.study.verdict import Verdict
from replication.verdicts.counts import tallies
from replication.verdicts.verdict_table import Judged, is_supported
from replication.verdicts.wording import table_names


def topologies(study: Study, results: Results) -> dict[str, list[str]]:
    """Return the network of each experiment's first point in lines of text."""
    drawn = {}
    for experiment in study.experiments:
        runs = results.runs(experiment.id, {})
        first = runs.loc[runs["supported"], "scenario"]
        if len(first):
            drawn[experiment.id] = topology_lines(results.scenarios[str(first.iloc[0])])
    return drawn


def study_page(
    source: Source,
    study: Study,
    figures: dict[str, list[Figure]],
    topologies: dict[str, list[str]],
) -> dict[str, Any]:
    """Gather a study's page but its later sections; what is given is by the experiment's id."""
    shown = ("", *source.shown_engines(study.id))
    cells = [row for row in of_study(source.cells, study.id) if row["engine"] in shown]
    claims = [row for row in of_study(source.claims, study.id) if row["engine"] in shown]
    design = source.design(study.id)
    links = point_links(study, design)
    tables = table_views(study, cells, source, links)
    cards = claim_cards(source, study, claims, links)
    # Of a claim on several experiments the first.
    homes = {c.id: next(q.experiment for q in c.quantities()) for c in study.claims if c.tests()}
    headline = source.headline(claims)
    experiments = [
        {
            "experiment": e,
            "factors": [_factor_line(factor) for factor in e.factors],
            "answer": _answer(
                tables.get(e.id, []), [row for row in headline if homes.get(row["claim"]) == e.id]
            ),
            "claims": [card for card in cards if homes.get(card["id"]) == e.id],
            "tables": tables.get(e.id, []),
            "points": _points(e, design, links),
            "topology": topologies.get(e.id),
            # The first leads, with what is published beside what was measured.
            "figures": figures.get(e.id, []),
        }
        for e in study.experiments
    ]
    failing = (Verdict.NOT_REPRODUCED, Verdict.DIRECTION_ONLY)
    counted = tallies(source.headline(cells), headline)
    ours = [row for row in design if is_supported(row)]
    return {
        "study": study,
        "headline": source.headlines[study.id],
        "failing": sum(tally.count(word) for tally in counted.values() for word in failing),
        "changes": len(study.changes),
        "experiments": experiments,
        "other_claims": [card for card in cards if card["id"] not in homes],
        "other_tables": tables.get("", []),
        "audit": of_study(source.findings, study.id),
        "checks": len(of_study(source.audit, study.id)),
        "table_names": table_names(study),
        "answer": _answer([t for own in tables.values() for t in own], headline),
        "runs": len(ours),
        "scenarios": len({(row["engine"], row["scenario"]) for row in ours}),
    }


def numbers_of_points(view: Mapping[str, Any]) -> dict[str, list[tuple[TableView, CellView]]]:
    """Return the numbers that rest on each point, by its page, with their tables.

    They are those of the engine whose verdicts stand for the study of the page `view`.
    """
    found: dict[str, list[tuple[TableView, CellView]]] = {}
    tables = [table for e in view["experiments"] for table in e["tables"]]
    for table in [*tables, *view["other_tables"]]:
        for cell in table["cells"]:
            if cell["row"]["engine"] == view["headline"].engine:
                for point in cell["points"]:
                    found.setdefault(point.file, []).append((table, cell))
    return found


def _answer(tables: Sequence[TableView], claims: Iterable[Judged]) -> list[str]:
    """Return what holds and what does not, in a sentence or two made from the data."""
    shown = (cell for table in tables for _, cells in table["rows"] for cell in cells if cell)
    return answer([cell["row"] for cell in shown], claims)


def _factor_line(factor: Factor) -> str:
    unit = f" ({unsaid})" if (unsaid := unsaid_unit(factor)) else ""
    averaged = ", averaged over" if factor.averaged else ""
    return f"{factor.label}{unit}{averaged}: {levels_in_brief(factor)}"


def _points(experiment: Experiment, design: list[Row], links: PointLinks) -> list[dict[str, Any]]:
    """Return each point on each engine, with its first row: a scenario to rerun, or a refusal."""
    own = (row for row in design if row["experiment"] == experiment.id)
    views = []
    for (point, _), rows in grouped(own, "point", "engine").items():
        levels = json.loads(rows[0]["levels"])
        link = links.get((experiment.id, point))
        views.append(
            {
                "labels": [level_label(f, levels.get(f.id, "")) for f in experiment.axes],
                "row": rows[0],
                "replicates": len(rows) if is_supported(rows[0]) else 0,
                "file": link.file if link else "",
            }
        )
    return views
