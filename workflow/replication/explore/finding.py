"""What a search's best explanation comes to: numbers inside, claims, bounds and published traces.

A figure of a trace is one number of one run that chance decides too. Here all of a flow's samples
are compared with ours: the first Wasserstein distance between their distributions, for the window
as in `measure.cwnd`, for the round trip over the whole run (`ss` prints the smoothed one, our
series the last sample), and for the count of retransmissions, which is one number, the mean
distance of our replicates' from it. Nothing of that is scored: it judges what was found.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from replication.compare.trace_comparison import TraceComparison, compare_flows, published_flows
from replication.explore.score import Choice, Combination, FamilyScore, Numbers
from replication.explore.search import CellJudge, Found, Trial
from replication.explore.trial_runner import DEFAULTS, StudyPart, is_held_out
from replication.metrics.cell_map import MappedCell
from replication.metrics.cwnd import DISTANCE
from replication.metrics.results import Results
from replication.metrics.sampled import SampledResults
from replication.study.claim_model import Claim
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.audit import audit_study
from replication.verdicts.cause import Reading, as_read
from replication.verdicts.claim import evaluate_claim


@dataclass(frozen=True)
class Share:
    """How many of the numbers are inside, before and after, and how far they are off."""

    cells: int
    before: int
    after: int
    median_before: float
    median_after: float


@dataclass(frozen=True)
class Leaving:
    """By how many bits the description gets longer without a cause, and the matches left.

    An exception for a table is `cause@table`.
    """

    atom: str
    level: str
    bits: float
    inside: int


def _read(judge: CellJudge, trial: Trial) -> Iterator[tuple[int, int, MappedCell, Combination]]:
    """Yield of each cell its family, its place, itself and its table's reading at a trial."""
    chosen = iter(trial.readings)
    families = zip(judge.reader.families, trial.printed, strict=True)
    for number, (family, array) in enumerate(families):
        tables = next(chosen).tables if array.shape[0] else {}
        for place in family.cells:
            cell = judge.reader.cells[place]
            yield number, place, cell, tables.get(cell.table, ())


def _columns(
    judge: CellJudge, trial: Trial, arrays: Sequence[Numbers], part: StudyPart
) -> Iterator[tuple[int, MappedCell, Combination, Numbers]]:
    """Yield of each cell of a part its place, itself, its reading and its values of `arrays`."""
    rows = [0] * len(arrays)
    for number, place, cell, combination in _read(judge, trial):
        if place in part.cells:
            column = judge.reader.families[number].combinations.index(combination)
            yield place, cell, combination, arrays[number][..., rows[number], column]
            rows[number] += 1


def cell_rows(
    judge: CellJudge, trial: Trial, ran: Trial, part: StudyPart, count: int
) -> list[dict[str, object]]:
    """Return a row of explained_cells.csv for each number, under the readings of a trial.

    A number whose tolerance is a rank is judged by the range of replicates.

    Parameters
    ----------
    judge, trial
        What scored the trial; its readings were chosen by what was seen.
    ran, part
        The same configuration on all that can be judged.
    count
        How many replicates are run.
    """
    ranges: dict[int, tuple[float, float]] = {}
    ranked = {
        p for p, cell in enumerate(judge.reader.cells) if cell.cell.tolerance.rank is not None
    }
    if ranked:
        results = judge.runner.replicated(trial.configuration, part, count)
        arrays = judge.reader.printed(results, count, part.cells)
        for place, _, _, values in _columns(judge, trial, arrays, part):
            is_known = not np.isnan(values).all()
            both = (float(np.nanmin(values)), float(np.nanmax(values))) if is_known else None
            ranges[place] = both or (math.nan, math.nan)
    rows = []
    for place, cell, combination, values in _columns(judge, trial, ran.printed, part):
        value = float(values)
        off = value / cell.value - 1 if cell.value else math.nan
        reading = ", ".join(f"{cause}={level}" for cause, level in combination)
        inside = judge.reader.inside(place, value)
        reason = f"Deviation {100 * off:+.1f} %, read as {reading or 'the study says'}."
        if place in ranked:
            low, high = ranges[place]
            inside = low - cell.half_ulp <= cell.value <= high + cell.half_ulp
            reason = f"Between {low:g} and {high:g} in {count} replicates."
        rows.append(
            {
                "study": judge.runner.study.id,
                "table": cell.table,
                "row": cell.row,
                "column": cell.column,
                "engine": judge.runner.machine.engine,
                "unit": cell.unit,
                "published": cell.value,
                "reproduced_mean": value,
                "inside": inside,
                "seen": not is_held_out(judge.runner.explanations, cell),
                "reason": reason,
            }
        )
    return rows


def share(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], seen: bool
) -> Share:
    """Return how many numbers are inside before and after."""

    def own(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return [row for row in rows if row["seen"] is seen]

    def median(rows: Sequence[Mapping[str, Any]]) -> float:
        off = [abs(r["reproduced_mean"] / r["published"] - 1) for r in rows if r["published"]]
        return float(np.nanmedian(off)) if off else math.nan

    one, two = own(before), own(after)
    inside = [sum(bool(row["inside"]) for row in rows) for rows in (one, two)]
    return Share(len(two), inside[0], inside[1], median(one), median(two))


def leaving_out(judge: CellJudge, found: Found, stage: StudyPart) -> list[Leaving]:
    """Return what leaving each cause out does, readings included, on what was seen."""
    leaving = []
    for (cause, level), trial in zip(found.best.configuration, found.waterfall, strict=True):
        lost = trial.total - found.best.total
        leaving.append(Leaving(cause, level, lost, inside_count(judge, trial, stage)))
    scores = judge.scores(stage)
    for pair in dict.fromkeys(p for choice in found.best.readings for p in choice.pairs):
        changed, lost = found.best, 0.0
        choices = []
        for score, array, choice in _with_choice(found.best, scores):
            if pair not in choice.pairs:
                choices.append(choice)
                continue
            # The best reading that does not use the cause.
            errors = judge.errors(score, array).copy()
            errors[:, ~_without(score, pair)] = 1e6
            choices.append(score.best(errors))
            lost += (choices[-1].data_bits + choices[-1].bits) - (choice.data_bits + choice.bits)
        changed = replace(found.best, readings=tuple(choices))
        leaving.append(Leaving(*pair, lost, inside_count(judge, changed, stage)))
    return leaving


def _with_choice(
    trial: Trial, scores: Sequence[FamilyScore]
) -> Iterator[tuple[FamilyScore, Numbers, Choice]]:
    chosen = iter(trial.readings)
    for score, array in zip(scores, trial.printed, strict=True):
        if score.places:
            yield score, array, next(chosen)


def _without(score: FamilyScore, pair: tuple[str, str]) -> npt.NDArray[np.bool_]:
    """Return which readings of a family do not use a cause at a level."""
    cause, level = pair[0].split("@")[0], pair[1]
    if level == "as_stated":
        return np.array([cause in dict(c) for c in score.family.combinations])
    return np.array([(cause, level) not in c for c in score.family.combinations])


def inside_count(judge: CellJudge, trial: Trial, stage: StudyPart) -> int:
    """Return how many numbers of a stage are inside at a trial, under its readings."""
    count = 0
    for score, array, choice in _with_choice(trial, judge.scores(stage)):
        for row, (place, column) in enumerate(zip(score.places, choice.column, strict=True)):
            count += judge.reader.inside(place, float(array[row, column]))
    return count


def judged_claims(
    study: Study, results: Results, readings: Mapping[tuple[str, str, str], Reading]
) -> dict[str, str]:
    """Return the verdict on each claim whose experiments were run.

    `readings` are what tables are read as, by experiment, metric and aggregate: a claim on the same
    quantity is read so too.
    """
    ran = set(results.design["experiment"])
    found = {}
    for claim in study.claims:
        quantities = claim.quantities()
        if quantities and all(wanted.experiment in ran for wanted in quantities):
            rows, _ = evaluate_claim(study, _read_claim(claim, readings), results)
            found[claim.id] = str(rows[0]["verdict"])
    return found


def _read_claim(claim: Claim, readings: Mapping[tuple[str, str, str], Reading]) -> Claim:
    if not readings:
        return claim
    document = _with_readings(json.loads(claim.model_dump_json()), readings)
    return Claim.model_validate_json(json.dumps(document))


def _with_readings(value: Any, readings: Mapping[tuple[str, str, str], Reading]) -> Any:
    if isinstance(value, list):
        return [_with_readings(item, readings) for item in value]
    if not isinstance(value, dict):
        return value
    place, metric, how = (str(value.get(name)) for name in ("experiment", "metric", "aggregate"))
    reading = readings.get((place, metric, how))
    if reading is not None:
        own = reading.model_dump(
            mode="json",
            include={"metric", "aggregate", "flows", "window_s"},
            exclude_none=True,
        )
        return value | own
    return {name: _with_readings(item, readings) for name, item in value.items()}


def table_readings(judge: CellJudge, trial: Trial) -> dict[tuple[str, str, str], Reading]:
    """Return what tables are read as, by what the study says they are; the first of a kind."""
    found: dict[tuple[str, str, str], Reading] = {}
    for _, _, cell, combination in _read(judge, trial):
        reading, wanted = judge.reader.reading(combination), cell.quantity
        if reading is not None:
            found.setdefault((wanted.experiment, wanted.metric, wanted.aggregate), reading)
    return found


def impossible(judge: CellJudge, trial: Trial) -> int:
    """Return how many printed numbers break a bound of a trial's set-up as the trial reads them."""
    study = judge.runner.on(trial.configuration)
    read = [
        as_read(study, cell, reading) if (reading := judge.reader.reading(own)) else cell
        for _, _, cell, own in _read(judge, trial)
    ]
    found = audit_study(study, read)
    return len({(f.table, f.row, f.column) for f in found if f.finding == Verdict.IMPOSSIBLE})


def of_defaults(trial: Trial) -> Trial:
    """Return a trial at the documented defaults, every number read as the study says."""
    assert trial.configuration == DEFAULTS
    stated = tuple(
        replace(
            c, tables=dict.fromkeys(c.tables, ()), column=(0,) * len(c.column), pairs=(), bits=0
        )
        for c in trial.readings
    )
    return replace(trial, readings=stated)


#: Metric to unit, in the order of tables.
UNITS = {"window": "segments", "round trip": "s", "retransmissions": "packets"}


@dataclass(frozen=True)
class Distance:
    """How far our flows are from a published one, at the defaults and under the explanation.

    `own` is the distance between the trace's own flows of one kind, a yardstick.
    """

    trace: str
    flow: str
    metric: str
    unit: str
    before: float
    after: float
    own: float | None


def distances(
    study: Study,
    published: Path,
    files: Mapping[str, Path],
    before: SampledResults,
    after: SampledResults,
) -> list[Distance]:
    """Return the distances of replicates of the defaults and of the explanation to raw traces.

    `files` has the traces by name; what is not there is left out.
    """
    flows = [flow for flow in published_flows(study, published, files) if flow.samples is not None]
    found = []
    for one, two in zip(compare_flows(before, flows), compare_flows(after, flows), strict=True):
        pairs = zip(_of(one).items(), _of(two).values(), strict=True)
        for (metric, first), second in pairs:
            if math.isfinite(first) and math.isfinite(second):
                own = one.own_distance() if metric == "window" else math.nan
                place = one.published.trace, one.published.flow, metric, UNITS[metric]
                found.append(Distance(*place, first, second, own if math.isfinite(own) else None))
    return found


def _of(comparison: TraceComparison) -> dict[str, float]:
    """Return metric to distance, mean over replicates; NaN where the trace does not have it."""
    (engine,) = comparison.engines
    return {
        "window": float(np.mean(comparison.reproduced(DISTANCE, engine))),
        "round trip": comparison.rtt_distance(),
        "retransmissions": comparison.retransmission_distance(),
    }
