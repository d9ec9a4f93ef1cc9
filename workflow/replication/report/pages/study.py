"""The page of a study: experiments, their figures, tables in the paper's shape, and claims."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from replication.metrics.metric_model import METRICS, display_unit, metric_label
from replication.metrics.results import Results
from replication.metrics.unfilled import UnfilledPoint, unfilled_points
from replication.report.charts.data import (
    as_printed,
    cell_of,
    labels_of,
    level_label,
    order_in,
    proper,
)
from replication.report.charts.figure import Figure
from replication.report.charts.run import topology_lines
from replication.report.pages import shown
from replication.report.pages.source import Source, cell_id, of_study
from replication.study.claim_model import Claim
from replication.study.published import Table, published_path, read_published
from replication.study.setup import Setup
from replication.study.study import Experiment, Study
from replication.study.table import Row, grouped
from replication.study.verdict import Verdict
from replication.verdicts.verdict_table import (
    CellRow,
    ClaimRow,
    Numbers,
    Tally,
    is_supported,
)
from replication.verdicts.wording import table_name, table_names, wording

#: A published number with ours, as `_cells` makes it, or a table, as `_table` makes it.
_View = dict[str, Any]
#: A study with more printed numbers has its tables folded.
_MOST_NUMBERS = 100


def study_page(
    source: Source,
    study: Study,
    results: Results,
    textbook: Results | None,
    figures: Mapping[str, list[Figure]],
) -> dict[str, Any]:
    """Return what the pages of a study and its evidence show; figures are by experiment.

    `results` are those at the defaults, `textbook` those under the textbook set-up on the primary
    engine, if any.
    """
    engines = ("", *source.shown_engines(study.id))
    cells = [row for row in of_study(source.cells, study.id) if row.engine in engines]
    claims = [row for row in of_study(source.claims, study.id) if row.engine in engines]
    design = source.design(study.id)
    tables: dict[str, list[_View]] = {}
    for number, table in enumerate(study.tables, start=1):
        if rows := [row for row in cells if row.table == table.id]:
            view = _table(f"table-{number}", table, rows, source)
            tables.setdefault(table.experiment, []).append(view)
    cards = list(_claim_cards(source, study, claims))
    # A claim on several experiments is shown with the first.
    homes = {c.id: next(q.experiment for q in c.quantities()) for c in study.claims if c.tests()}
    printed_for = {table.id: table.experiment for table in study.tables}
    numbers, results_of_claims = source.on_primary(cells), source.on_primary(claims)
    never_fills = unfilled_points(textbook) if textbook else []
    experiments = []
    for e in study.experiments:
        own = [row for row in design if row["experiment"] == e.id]
        ran = [row for row in own if is_supported(row)]
        printed = [row for row in numbers if printed_for.get(row.table) == e.id]
        judged = [row for row in results_of_claims if homes.get(row.claim) == e.id]
        experiments.append(
            {
                "experiment": e,
                "answer": shown.answer(printed, judged),
                "claims": [card for card in cards if homes.get(card["claim"].id) == e.id],
                "tables": tables.get(e.id, []),
                "points": list(_points(source, e, own)),
                "unfilled": list(_labels(e, own, never_fills)),
                "topology": topology_lines(results.scenarios[ran[0]["scenario"]]) if ran else [],
                "figures": figures[e.id],
            }
        )
    answer = shown.answer(numbers, results_of_claims)
    textbook_claims = source.on_primary(claims, Setup.TEXTBOOK)
    textbook_cells = source.on_primary(cells, Setup.TEXTBOOK)
    ours = [row for row in design if is_supported(row)]
    return {
        "study": study,
        "primary": source.primary_engines[study.id],
        "failing": _failing(answer["counted"]),
        "tested": sum(tally.tested for tally in answer["counted"].values()),
        "experiments": experiments,
        "folds_tables": sum(row.kind == "printed" for row in numbers) > _MOST_NUMBERS,
        "other_claims": [card for card in cards if card["claim"].id not in homes],
        "audit": list(_audited(source, study)),
        "checks": len(of_study(source.audit, study.id)),
        "table_names": table_names(study),
        "answer": answer,
        "has_textbook": bool(textbook_claims or textbook_cells),
        "textbook_answer": shown.answer(textbook_cells, textbook_claims),
        "runs": len(ours),
        "scenarios": len({(row["engine"], row["scenario"]) for row in ours}),
    }


def _audited(source: Source, study: Study) -> Iterator[Row]:
    """Yield the findings of the audit, each with its number as printed, in SI units."""
    tables = {table.id: table for table in study.tables}
    for row in of_study(source.findings, study.id):
        # The column of a sum of numbers names each of theirs.
        factor = cell_of(tables[row["table"]], row["column"].partition("+")[0]).factor
        value = f"{float(row['published']) / factor:.10g}"
        yield row | {"printed": value if factor == 1 else f"{value} × {factor:g}"}


def _failing(counted: Mapping[str, Tally]) -> dict[str, int]:
    """Return how many of each kind, in words, do not match; only those that are."""
    words = {"printed": "printed number", "trace": "trace statistic", "claims": "claim"}
    failing = {
        words[what]: sum(tally.by_verdict[verdict] for verdict in shown.FAILING)
        for what, tally in counted.items()
    }
    return {word: count for word, count in failing.items() if count}


def numbers_of_points(view: Mapping[str, Any]) -> dict[str, list[tuple[_View, _View]]]:
    """Return the numbers on the primary engine that rest on each point, by the point's page."""
    found: dict[str, list[tuple[_View, _View]]] = {}
    for table in [table for e in view["experiments"] for table in e["tables"]]:
        for cell in table["cells"]:
            if cell["row"].engine == view["primary"].engine:
                for point in cell["points"]:
                    found.setdefault(point.file, []).append((table, cell))
    return found


def _points(source: Source, experiment: Experiment, design: list[Row]) -> Iterator[_View]:
    """Yield each point on each engine with its first row: a scenario to rerun, or a refusal."""
    for (point, _), rows in grouped(design, "point", "engine").items():
        levels = json.loads(rows[0]["levels"])
        link = source.points(rows[0]["study"]).get((experiment.id, point))
        yield {
            "labels": [level_label(f, levels.get(f.id, "")) for f in experiment.factors],
            "row": rows[0],
            "replicates": len(rows) if is_supported(rows[0]) else 0,
            "file": link.file if link else "",
        }


def _labels(
    experiment: Experiment, design: list[Row], points: Sequence[UnfilledPoint]
) -> Iterator[str]:
    """Yield the labels of those points that are of an experiment."""
    levels = {row["point"]: json.loads(row["levels"]) for row in design}
    for point in points:
        if point.experiment == experiment.id:
            yield labels_of(levels[point.point], experiment.factors)


def _claim_cards(source: Source, study: Study, rows: Sequence[ClaimRow]) -> Iterator[_View]:
    """Yield the claims of a study with their rows, those of the primary engine first.

    `rows` of a card are those at the defaults, `textbook` those under the textbook set-up.
    """
    engines = ["", *source.shown_engines(study.id)]
    quotes = Counter(claim.quote for claim in study.claims)
    for claim in study.claims:
        judged = [row for row in rows if row.claim == claim.id]
        judged.sort(key=lambda row: engines.index(row.engine))
        results = [row for row in judged if row.setup == Setup.DEFAULTS]
        textbook = [row for row in judged if row.setup == Setup.TEXTBOOK]
        tests = []
        for part in claim.tests():
            words = wording(study, part)
            less = words.condition(part.direction) if part.direction else ""
            tests.append((words.statistic, words.condition(part.expect), less))
        if results:
            yield {
                "claim": claim,
                "shares_quote": quotes[claim.quote] > 1,
                "tests": tests,
                "measured": _measured(study, claim, results[0]),
                "rows": results,
                "textbook": textbook,
                "textbook_measured": _measured(study, claim, textbook[0]) if textbook else "",
                # Engines that ran other values than those of the study.
                "substituted": [name for name in engines if study.substituted(name)],
                # Whether the paper's own numbers pass the test.
                "self_consistency": source.self_consistency.get((study.id, claim.id)),
                "points": source.under(judged),
                "changes": len(study.changes_to("claims", claim.id)),
            }


def _measured(study: Study, claim: Claim, row: ClaimRow) -> str:
    """Return the statistic of a row in words; empty if it decides nothing."""
    value = shown.parse(row.observed)
    if value is None or row.verdict == Verdict.NOT_TESTABLE:
        return ""
    if len(tests := claim.tests()) > 1:
        # "1 of 2 parts is reproduced", without those that cannot fail.
        counted = row.reasons[0].partition(" parts")[0]
        parts = "part" if counted.endswith(" of 1") else "parts"
        return f"{counted} {parts} {'holds' if counted.startswith('1 ') else 'hold'}"
    return f"measured {wording(study, tests[0]).value(value)}"


def _table(html_id: str, table: Table, rows: list[CellRow], source: Source) -> _View:
    """Return a published table; `html_id` is a safe id, which the paper's name may not be."""
    study = rows[0].study
    place = order_in(source.studies[study], table)
    rows = sorted(rows, key=lambda row: place(row.row, row.column))
    engines, notes = source.shown_engines(study), _shared(rows)
    cells = list(_cells(rows, notes, source, table))
    name, primary = table_name(table.id, table.title), ("", *engines[:1])
    return {
        "html_id": html_id,
        "evidence": f"{study}~evidence.html",
        # The study's page leaves out tables of traces, which have many numbers.
        "printed": any(row.kind == "printed" for row in rows),
        # "Table II" if the paper numbers it, and otherwise its title, which is not repeated.
        "name": name,
        "title": "" if name == table.title else table.title,
        **_grid([cell for cell in cells if cell["row"].engine in primary], place),
        "cells": cells,
        "has_textbook": any(cell["textbook"] for cell in cells),
        "tally": Numbers(source.on_primary(rows)),
        "tolerances": _tolerances(table),
        "engines": engines,
        "notes": notes,
        # The choices of the filter: verdicts, each with its number of cells on all engines.
        "choices": [
            (v, n) for v in shown.BADGES if (n := sum(cell["verdict"] == v for cell in cells))
        ],
    }


def _grid(cells: Sequence[_View], place: Callable[[str, str], tuple[int, int]]) -> dict[str, Any]:
    """Return the paper's columns, each with the unit of its numbers if they share one, and rows."""
    at = {(cell["row"].row, cell["row"].column): cell for cell in cells}
    by_column = sorted((cell["row"] for cell in cells), key=lambda row: place("", row.column))
    columns = grouped(by_column, "column", "column_label")
    units = [{shown.display_unit(row.unit) for row in own} for own in columns.values()]
    rows = dict.fromkeys((cell["row"].row, cell["row"].row_label) for cell in cells)
    return {
        "columns": [
            (label, next(iter(one - {label})) if len(one) == 1 and one != {label} else "")
            for (_, label), one in zip(columns, units, strict=True)
        ],
        # None where the paper prints no number.
        "rows": [(label, [at.get((row, key)) for key, _ in columns]) for row, label in rows],
    }


def _cells(
    rows: Sequence[CellRow], notes: Sequence[str], source: Source, table: Table
) -> Iterator[_View]:
    """Yield each number on each engine at the defaults, with its value by the textbook set-up."""
    published = read_published(published_path(source.root, rows[0].study))
    printed = {(number.table, number.row, number.column): number for number in published}
    by_key = grouped(rows, "table", "row", "column")
    points = {key: source.under(same) for key, same in by_key.items()}
    textbook = {_place(row): row for row in rows if row.setup == Setup.TEXTBOOK}
    for row in rows:
        if row.setup != Setup.DEFAULTS:
            continue
        key = (row.table, row.row, row.column)
        second = textbook.get(_place(row))
        yield {
            "row": row,
            "unit": shown.display_unit(row.unit),
            "printed": printed.get(key),
            "published": _printed(row),
            **_judged(row, notes),
            "textbook": _judged(second, notes) if second else None,
            "html_id": cell_id(*key),
            "points": points[key],
        }


def _place(row: CellRow) -> tuple[str, ...]:
    """Return what the rows of a number on one engine share under both set-ups."""
    return row.table, row.row, row.column, row.engine


def _judged(row: CellRow, notes: Sequence[str]) -> _View:
    """Return our value, the verdict, and the reason without the sentences in `notes`."""
    return {
        "reproduced": shown.number(row.reproduced_mean, row.unit),
        "verdict": shown.BADGE_OF[row.verdict],
        "reason": " ".join(part for part in row.reasons if part not in notes),
    }


def _printed(row: CellRow) -> shown.Number:
    """Return a number with the paper's digits and the factor that converts it to the metric."""
    to_display = display_unit(row.unit)[1]
    text = as_printed(row.published, row.published_half_ulp, to_display, row.factor)
    return shown.Number(shown.number(row.published, row.unit).raw, text)


def _shared(rows: Sequence[CellRow]) -> list[str]:
    """Return the sentences that most reasons share across verdicts, to be shown once."""
    of: dict[str, list[str]] = {}
    for row in rows:
        for part in dict.fromkeys(row.reasons):
            of.setdefault(part, []).append(row.verdict)
    return [part for part, own in of.items() if 2 * len(own) > len(rows) and len(set(own)) > 1]


def _tolerances(table: Table) -> list[str]:
    """Return each preset tolerance of a table with its reason and the columns it applies to."""
    columns = (table.columns or {}).items()
    named = [(proper(key.replace("_", " ")), cell) for key, cell in columns]
    if table.cell is not None:
        named.append((metric_label(table.cell.metric), table.cell))
        named += [(proper(key), table.cell_of(key)) for key in table.tolerances]
    lines: dict[tuple[str, str], list[str]] = {}
    for name, cell in named:
        tolerance, unit = cell.tolerance, METRICS[cell.metric].unit
        if tolerance.relative is not None:
            width = f"tolerance ±{100 * tolerance.relative:g} % of the published value"
        elif tolerance.absolute is not None:
            width = f"tolerance ±{shown.amount(tolerance.absolute, unit)}"
        elif tolerance.spread is not None:
            width = f"by the printed standard deviation of {tolerance.spread.runs} published runs"
        else:
            width = f"central 95 % of our runs, and a factor of {tolerance.factor:g} of their mean"
        lines.setdefault((width, tolerance.reason), []).append(name)
    return [f"{', '.join(who)}: {width}. {reason}" for (width, reason), who in lines.items()]
