"""The page on engines: what ran, whether engines agree, and where and why they differ."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

from replication.compare.agreement import TABLES, EngineDifference, load_differences
from replication.compare.flow_differences import KEY, METRICS, outdated
from replication.engines.catalogue import ENGINES, package_warning
from replication.metrics.metric_model import metric_label
from replication.metrics.results import Results
from replication.report.pages.shown import Badge
from replication.report.pages.source import Source, read_if_there
from replication.study.study import CONFORMANCE, DIFFERENCES
from replication.study.table import CONFORMANCE_COLUMNS, DIFFERENCE_COLUMNS, Row, grouped, read_rows

#: Outcomes of a check in a canonical scenario.
HOLDS = Badge("within tolerance", "reproduced", "the tolerance was set before any run")
NAMED = Badge("outside, cause named", "direction", "outside the tolerance for a known reason")
DEVIATES = Badge("outside, cause unknown", "failed", "outside the tolerance for an unknown reason")
REFUSED = Badge("refused", "untestable", "the engine lacks what the check needs")


def engines_page(source: Source) -> dict[str, Any]:
    """Return what the page shows."""
    known = load_differences(source.root).by_id
    measured = read_if_there(source.root / DIFFERENCES, DIFFERENCE_COLUMNS)
    return {
        "engines": [_engine(source, name) for name in source.engines],
        "missing": [_engine(source, name) for name in ENGINES if name not in source.engines],
        "primary_engines": [
            (study, source.primary_engines[name]) for name, study in source.studies.items()
        ],
        "agreement": _agreement(source, known),
        "conformance": _conformance(source.root),
        "flows": list(_flow_differences(measured)),
        "outdated": [old.engine for old in outdated(source.root, measured)],
        "known": known,
        "differences": _on_engines(known.values(), source.engines),
        "outcomes": (HOLDS, NAMED, DEVIATES, REFUSED),
        "downloads": [name for name in TABLES if (source.data / name).is_file()],
    }


def _conformance(root: Path) -> list[tuple[Row, Badge]]:
    """Return the rows of the committed table with their outcomes; none if it is missing."""
    rows = read_if_there(root / CONFORMANCE, CONFORMANCE_COLUMNS)
    known = {"refused": REFUSED, "true": HOLDS}
    return [(row, known.get(row["holds"], NAMED if row["note"] else DEVIATES)) for row in rows]


def _flow_differences(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield the large differences: values on each engine, the law and the causes."""
    for same in grouped(rows, *KEY).values():
        largest = max(same, key=lambda row: float(row["difference"]))
        causes = [cause for row in same for cause in row["entry"].split("; ") if cause]
        if causes:
            yield {
                **largest,
                "values": {row["engine"]: row["value"] for row in same},
                "shown": METRICS[largest["metric"]],
                "entries": list(dict.fromkeys(causes)),
            }


def differences_of(root: Path, results: Results) -> list[EngineDifference]:
    """Return the known differences that concern any run of a study on an engine they name.

    Each names only the engines that ran.
    """
    ran = results.design[results.design["supported"]][["engine", "scenario"]].drop_duplicates()
    runs = [(row.engine, results.scenarios[str(row.scenario)]) for row in ran.itertuples()]
    concerning = [
        difference
        for difference in load_differences(root).differences
        if any(e in difference.engines and difference.concerns.holds(run) for e, run in runs)
    ]
    return _on_engines(concerning, {engine for engine, _ in runs})


def _on_engines(
    differences: Iterable[EngineDifference], engines: Container[str]
) -> list[EngineDifference]:
    """Return what each difference says of these engines; not those that say nothing of them."""
    shown = []
    for difference in differences:
        texts = {name: text for name, text in difference.engines.items() if name in engines}
        if texts:
            shown.append(difference.model_copy(update={"engines": texts}))
    return shown


def _engine(source: Source, name: str) -> dict[str, Any]:
    ran = source.provenance.get("engines", {}).get(name, {})
    return {
        "name": name,
        "family": ENGINES[name].title,
        "version": str(ran.get("version", ENGINES[name].version)),
        "warning": package_warning(ran.get("package") or {}),
        "installed": ran.get("installed"),
        "original_of": [s for s in source.studies.values() if s.original_system.engine == name],
        "parts": [
            (study, source.parts[id][name])
            for id, study in source.studies.items()
            if name in source.parts[id]
        ],
    }


def _agreement(source: Source, known: Mapping[str, EngineDifference]) -> dict[str, Any] | None:
    """Return how often engines agree and where they do not; None if only one engine ran."""
    if len(source.engines) < 2:
        return None
    tables = {name: read_rows(source.data / name, TABLES[name]) for name in TABLES}
    pairs, contrasts = tables["agreement_pairs.csv"], tables["agreement_contrasts.csv"]
    return {
        "agreed": sum(row["agree"] == "true" for row in pairs),
        "compared": sum(row["agree"] != "" for row in pairs),
        # Studies that an engine refuses entirely, and why.
        "left_out": [
            (source.studies[study], f"{name} {part.why_not()}")
            for study, parts in source.parts.items()
            for name, part in parts.items()
            if not part.ran
        ],
        "disagreements": list(_disagreements(source, pairs, contrasts, known)),
    }


def _disagreements(
    source: Source,
    pairs: Sequence[Row],
    contrasts: Sequence[Row],
    known: Mapping[str, EngineDifference],
) -> Iterator[dict[str, Any]]:
    """Yield each disagreement of two engines, their measurements, and possible causes."""
    by_item = grouped(contrasts, "study", "group", "left", "right")
    apart = [
        row | {"group": row["claim"] or f"{row['table']}: {row['column']}"}
        for row in pairs
        if row["agree"] == "false"
    ]
    for key, rows in grouped(apart, "study", "group", "left", "right").items():
        study, group, left, right = key
        first, causes = rows[0], rows[0]["causes"].split("; ")
        column = f"{source.table_name(study, first['table'])}, {first['column'].replace('_', ' ')}"
        measured = by_item.get(key, [])
        quotes = {one.id: one.quote for one in source.studies[study].claims}
        beyond = dict.fromkeys(row["metric"] for row in measured if row["differs"] == "true")
        yield {
            "study": source.studies[study],
            "label": f"claim {group}: “{shorten(quotes[group], 90)}”" if first["claim"] else column,
            "left": left,
            "right": right,
            "rows": rows,
            "sides": [(side, same) for (side,), same in grouped(measured, "side").items()],
            # Metrics that differ by more than run-to-run variation, if that is known.
            "beyond": [metric_label(name) for name in beyond],
            "replicated": any(row["differs"] for row in measured),
            # Each with those of its metrics that differ here.
            "causes": [
                (known[name], [metric_label(one) for one in known[name].shows_in if one in beyond])
                for name in causes
                if name in known
            ],
        }
