"""The evidence of a study: why numbers differ, how robust verdicts are, and published traces."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

from replication.base import table
from replication.base.files import read_json
from replication.base.table import Row, grouped, read_rows
from replication.compare.trace_comparison import COMPARISON, RAW, SAMPLES, WINDOWS
from replication.design.config import Reading, Scale, load_sensitivity
from replication.design.input_hashes import is_same
from replication.engines.path import TcpPath
from replication.explore import explanation, robustness
from replication.explore.cause import Cause, Refuted, load_explanations
from replication.explore.explained import EquallyGood, ExplainedCell, Explanation, Finding
from replication.explore.readings import READING_COLUMNS, READINGS
from replication.explore.search import EQUALLY_GOOD_BITS
from replication.metrics.cwnd import LABELS
from replication.metrics.results import Results
from replication.report.charts import figure as draw
from replication.report.charts.figure import Figure
from replication.report.charts.time import trace_figures
from replication.report.pages.shown import amount
from replication.report.pages.source import Source, of_study, read_if_there
from replication.study.claim_model import Claim
from replication.study.scenario import Scenario
from replication.study.setup import Setup
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.verdict_table import Tally, claims_tally
from replication.verdicts.wording import lower, table_names


@dataclass(frozen=True, kw_only=True)
class FindingView(Finding):
    """The best of a search with its changes in words, and the claims that it alone loses.

    `tallies` count the verdicts on claims at the defaults and explained, in the runs of the search.
    """

    titles: list[str]
    tallies: tuple[Tally, Tally]
    lost: list[Claim]


@dataclass(frozen=True, kw_only=True)
class ExplanationView(FindingView, Explanation):
    """A study's explanation; `outside` has the tables of most numbers that it leaves unexplained.

    `rows` are the numbers under it, and `ties` what fits equally well within so many bits.
    """

    rows: list[ExplainedCell]
    ties: list[tuple[list[str], float]]
    ties_within_bits: float
    coupled_because: str
    outside: list[tuple[str, int]]

    @property
    def is_found(self) -> bool:
        """Whether it is at least a guess."""
        return self.result != explanation.NONE_FOUND

    @property
    def is_explanation(self) -> bool:
        """Whether it meets all conditions."""
        return self.result == explanation.EXPLANATION


def explanation_of(root: Path, data: Path, study: Study) -> ExplanationView | None:
    """Return a study's explanation; None if there is no current one."""
    folder = data / "sensitivity" / study.id
    if not (folder / explanation.NAME).is_file() or is_stale(root, data, study):
        return None
    best = table.read_typed(folder / explanation.NAME, Explanation)
    cells = ExplainedCell.read(folder / "explained_cells.csv")
    names = table_names(study)
    missed = [names.get(cell.table, cell.table) for cell in cells if not cell.matches]
    known = load_explanations(root, study.id)
    causes = known.by_id if known else {}
    coupled = known.coupled if known and best.coupled else None
    first = vars(_shown(study, best, causes))
    others: list[Finding] = [_shown(study, other, causes) for other in best.others]
    searched = {name: value for name, value in vars(best).items() if name not in first}
    searched["others"] = others
    return ExplanationView(
        **first,
        **searched,
        rows=cells,
        ties=[_tie(tie, causes) for tie in best.equally_good],
        ties_within_bits=EQUALLY_GOOD_BITS,
        coupled_because=coupled.reason if coupled else "",
        outside=Counter(missed).most_common(3),
    )


def is_stale(root: Path, data: Path, study: Study) -> bool:
    """Return whether a study's explanation was searched for other inputs than the present ones."""
    path = data / "sensitivity" / study.id / explanation.NAME
    if not path.is_file():
        return False
    now = partial(explanation.sources, root, study.id)
    return not is_same(data, read_json(path)["input_hashes"], now)


def _shown(study: Study, finding: Finding, causes: Mapping[str, Cause]) -> FindingView:
    before, after = finding.claims_before, finding.claims_after
    broken = {claim.claim for claim in finding.broken}
    whole = [claim for claim in study.claims if claim.is_counted and claim.id not in broken]
    values = {field.name: getattr(finding, field.name) for field in fields(Finding)}
    return FindingView(
        **values,
        titles=[_title_of(it.cause, it.level, it.title, causes) for it in finding.causes],
        tallies=(claims_tally(study, before), claims_tally(study, after)),
        lost=[claim for claim in whole if _is_lost(claim.id, before, after)],
    )


def _is_lost(claim: str, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    held = before.get(claim) == Verdict.REPRODUCED
    return held and after.get(claim) != Verdict.REPRODUCED


def _title_of(change: str, level: str, title: str, causes: Mapping[str, Cause]) -> str:
    """Return a change in words, with its number and the one table that it applies to, if any."""
    name, _, table = change.partition("@")
    cause = causes.get(name)
    if cause and (level_title := cause.title_at(level)) != cause.title:
        # The level's title alone, such as "50 packets", names no cause.
        title = f"{cause.title}: {lower(level_title)}"
    elif cause and (number := number_of(cause, level)):
        title = f"{title} ({number})"
    return f"{title} (table {table} alone)" if table else title


def _tie(tie: EquallyGood, causes: Mapping[str, Cause]) -> tuple[list[str], float]:
    """Return the changes of a configuration that fits equally well, and its additional bits."""
    titles = []
    for name, level in tie.causes:
        cause = causes.get(name.partition("@")[0])
        title = cause.title_at(level) if cause else name
        titles.append(_title_of(name, level, title, causes))
    return titles or ["the documented defaults"], tie.worse_by_bits


def refuted_explanations(source: Source) -> list[tuple[Study, Refuted]]:
    """Return the earlier explanations that turned out wrong."""
    refuted = []
    for name, study in source.studies.items():
        known = load_explanations(source.root, name)
        refuted += [(study, explanation) for explanation in known.refuted] if known else []
    return refuted


def number_of(cause: Cause, level: str) -> str:
    """Return the number, with unit, that a cause sets at a level; empty if its title has it."""
    levels = cause.levels or []
    known = next((known for known in levels if known.key == level), None)
    if known is not None and (known.title or known.set is None or len(levels) == 1):
        return ""
    changed = known.set if known else cause.set
    assert changed is not None
    # Names end in their unit, except those of probabilities.
    match = re.search(rf'"(\w+)":("\$value"|{re.escape(level)}\b)', changed.model_dump_json())
    named, _, end = match[1].rpartition("_") if match else ("", "", "")
    if not named:
        return f"{end} {level}".strip()
    return amount(float(level), {"bps": "bit/s"}.get(end, end))


def varied_claims(source: Source, study: Study) -> tuple[list[Row], list[str]]:
    """Return the robustness of the claims that count and can be tested, and the other claims."""
    path = source.data / "sensitivity" / study.id / "claims.csv"
    rows = read_rows(path, robustness.TABLES["claims"])
    counted = {claim.id for claim in study.claims if claim.is_counted}
    judged = [row for row in of_study(source.claims, study.id) if row.setup == Setup.DEFAULTS]
    untested = [row for row in judged if row.verdict == Verdict.NOT_TESTABLE]
    keys = {(row.claim, row.engine) for row in untested}
    tested = [r for r in rows if not keys & {(r["claim"], ""), (r["claim"], r["engine"])}]
    kept = [row for row in tested if row["claim"] in counted]
    return kept, [row["claim"] for row in rows if row not in kept]


@dataclass(frozen=True)
class Robustness:
    """The section on robustness.

    `note` says why the engine is not the paper's system, and is empty if it is. `points` and
    `words` are counts of designs and of claims, `apart` the claims that are left out.
    """

    engine: str
    note: str
    points: list[tuple[str, int]]
    apart: list[str]
    scale: Scale
    words: list[tuple[str, int]]
    claims: list[tuple[Claim, Row]]


def has_robustness(source: Source, study: Study) -> bool:
    """Return whether a study's robustness was explored, by its present version or another."""
    return (source.data / "sensitivity" / study.id / "claims.csv").is_file()


def robust_view(source: Source, study: Study) -> Robustness | None:
    """Return the section on robustness; None if it is out of date or was not explored."""
    folder = source.data / "sensitivity" / study.id
    if not has_robustness(source, study):
        return None
    if not robustness.is_current(source.root, source.data, study.id):
        return None
    points = read_rows(folder / "points.csv", robustness.TABLES["points"])
    rows, apart = varied_claims(source, study)
    engine, original = points[0]["engine"], study.original_system.engine
    note = f"{original}, the paper's own system, was not available."
    claims = {claim.id: claim for claim in study.claims}
    words = Counter(row["word"] for row in rows if row["designs"] != "0")
    return Robustness(
        engine=engine,
        note=note if engine != original else "",
        points=list(Counter(row["kind"] for row in points).items()),
        apart=apart,
        scale=load_sensitivity(source.root).of(study.id).exploration,
        words=words.most_common(),
        claims=[(claims[row["claim"]], row) for row in rows],
    )


@dataclass(frozen=True)
class Readings:
    """The counted claims under each reading, with the counts of their verdicts."""

    readings: list[Reading]
    engine: str
    runs: str
    tallies: list[Tally]
    claims: list[tuple[Claim, list[Row]]]


def readings_view(source: Source, study: Study) -> Readings | None:
    """Return the counted claims by reading; None if there are no current results."""
    rows = read_if_there(source.data / "sensitivity" / study.id / READINGS, READING_COLUMNS)
    if not rows or not robustness.is_current(source.root, source.data, study.id):
        return None
    by_reading: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_reading.setdefault(row["reading"], {})[row["claim"]] = row
    readings = load_sensitivity(source.root).of(study.id).readings
    judged = [by_reading[reading.title] for reading in readings]
    counted = [claim for claim in study.claims if claim.is_counted]
    tallies = []
    for by_claim in judged:
        verdicts = {claim: row["verdict"] for claim, row in by_claim.items()}
        tallies.append(claims_tally(study, verdicts))
    return Readings(
        readings=readings,
        engine=rows[0]["engine"],
        runs=rows[0]["runs"],
        tallies=tallies,
        claims=[(claim, [by_claim[claim.id] for by_claim in judged]) for claim in counted],
    )


def figures_of_traces(source: Source, study: Study) -> dict[str, list[Figure]]:
    """Return the figure of a study's traces by experiment; none if nothing was compared."""
    rows = of_study(read_if_there(source.data / COMPARISON, table.TRACE_COLUMNS), study.id)
    if not rows:
        return {}
    windows = table.read_parquet(source.data / WINDOWS).to_pandas()
    windows = windows[windows["study"] == study.id]
    engine, figures = source.primary_engines[study.id].engine, {}
    for (experiment,), of_experiment in grouped(rows, "experiment").items():
        traces = {row["trace"]: row["point"] for row in of_experiment}
        equal = _equal_windows(source, study, experiment, traces)
        drawn = trace_figures(windows, list(traces), engine, equal)
        figures[experiment] = draw.with_prefix(drawn, study.id, experiment)
    return figures


def _equal_windows(
    source: Source, study: Study, experiment: str, points: Mapping[str, str]
) -> dict[str, float]:
    """Return by trace the window (segments) at which its flows share path and queue equally.

    `points` are those of the traces; of others nothing was run on the primary engine.
    """
    results = source.primary_results(Results.load(source.data, study.id))
    runs = results.runs(experiment, {}).set_index("point")["scenario"].to_dict()
    shares = {}
    for trace, point in points.items():
        if document := results.scenarios.get(runs.get(point, "")):
            path = TcpPath.of(Scenario.model_validate(document))
            flows = sum(flow["kind"] == "tcp" for flow in document["flows"])
            shares[trace] = (path.bdp_packets + path.queue_packets) / flows
    return shares


@dataclass(frozen=True)
class TraceView:
    """A published trace: for each flow and metric, the row of each engine."""

    name: str
    html_id: str
    rows: list[dict[str, Row]]


@dataclass(frozen=True)
class TraceSection:
    """The section on published traces.

    `samples` are first samples on the primary engine. Of the traces `missing` the raw samples were
    not there.
    """

    engines: list[str]
    traces: list[TraceView]
    samples: list[Row]
    missing: list[str]
    labels: Mapping[str, str]


def trace_section(source: Source, study: Study) -> TraceSection | None:
    """Return the section on published traces; None if nothing was compared."""
    rows = of_study(read_if_there(source.data / COMPARISON, table.TRACE_COLUMNS), study.id)
    if not rows:
        return None
    ran = {row["engine"] for row in rows}
    shown = source.shown_engines(study.id)
    samples = read_if_there(source.data / SAMPLES, table.TRACE_SAMPLE_COLUMNS)
    traces, missing = [], []
    for (name,), of_trace in grouped(rows, "trace").items():
        numbers = grouped(of_trace, "flow", "metric").values()
        by_engine = [{row["engine"]: row for row in same} for same in numbers]
        traces.append(TraceView(name, f"compared={draw.name_of(name)}", by_engine))
        if of_trace[0]["evidence"] != RAW:
            missing.append(name)
    return TraceSection(
        engines=[engine for engine in shown if engine in ran],
        traces=traces,
        samples=[row for row in of_study(samples, study.id) if row["engine"] in shown[:1]],
        missing=missing,
        labels=LABELS,
    )
