"""What the best explanation comes to: on what was seen, on what was not, and by its name.

It is an *explanation* if it beats the null, holds on what the search did not see, and every atom
pays for itself; a *best guess* if it gains and beats the null but one of the others fails; else
*none found*.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from replication.judge.audits.audit import audit_study
from replication.judge.causes.reading import Reading, as_read
from replication.judge.claim import evaluate_claim
from replication.measure.results import Results
from replication.sensitivity.why.distribution import Distance
from replication.sensitivity.why.part import StudyPart, is_unseen
from replication.sensitivity.why.reader import Combination, Reader
from replication.sensitivity.why.score import FamilyScore
from replication.sensitivity.why.search import Found
from replication.sensitivity.why.set_up import DEFAULTS
from replication.sensitivity.why.table import BEST_GUESS, EXPLANATION, NONE_FOUND
from replication.sensitivity.why.trial import CellJudge, Trial
from replication.study.claim_model import Claim
from replication.study.study import Study
from replication.study.verdict import Verdict


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
    """What leaving one atom out does.

    Attributes
    ----------
    atom, level
        The atom; an exception for a table is `atom@table`.
    bits
        By how much the description gets longer.
    inside
        Numbers inside without it, of those that were seen.
    """

    atom: str
    level: str
    bits: float
    inside: int


@dataclass(frozen=True)
class Finding:
    """All that is said of a study's best explanation."""

    word: str
    pairs: tuple[tuple[str, str], ...]
    bits: float
    gain_bits: float
    null_p: float
    seen: Share
    unseen: Share
    leaving: tuple[Leaving, ...]
    claims_before: Mapping[str, str]
    claims_after: Mapping[str, str]
    cells: list[dict[str, object]] = field(default_factory=list)
    reasons: tuple[str, ...] = ()
    #: Printed numbers that cannot be, as the study states and reads them and under the explanation.
    impossible: tuple[int, int] = (0, 0)
    distances: tuple[Distance, ...] = ()


def read_as(trial: Trial, judge: CellJudge) -> list[dict[str, Combination]]:
    """Return of each family its tables' readings, in the order of the reader's families."""
    chosen = iter(trial.readings)
    found = []
    for family, array in zip(judge.reader.families, trial.printed, strict=True):
        found.append(next(chosen).tables if array.shape[0] else {})
        assert family.cells
    return found


def cell_rows(
    judge: CellJudge, trial: Trial, whole: Trial, rung: StudyPart, engine: str
) -> Iterator[dict[str, object]]:
    """Yield a row of explained_cells.csv for each number, under the readings of a trial.

    Parameters
    ----------
    judge
        What scored the trial.
    trial
        Its readings were chosen by what was seen.
    whole, rung
        The same set-up on all that can be judged.
    engine
        The engine.
    """
    found = judge.bench.space.explanations
    for family, readings, array in zip(
        judge.reader.families, read_as(trial, judge), whole.printed, strict=True
    ):
        places = [place for place in family.cells if place in set(rung.cells)]
        for row, place in enumerate(places):
            cell = judge.reader.cells[place]
            combination = readings.get(cell.table, ())
            value = float(array[row, family.combinations.index(combination)])
            off = value / cell.value - 1 if cell.value else math.nan
            reading = ", ".join(f"{atom}={level}" for atom, level in combination)
            yield {
                "study": judge.bench.space.study.id,
                "table": cell.table,
                "row": cell.row,
                "column": cell.column,
                "engine": engine,
                "unit": cell.unit,
                "published": cell.value,
                "reproduced_mean": value,
                "inside": judge.reader.inside(place, value),
                "seen": not is_unseen(found, cell),
                "reason": f"Deviation {100 * off:+.1f} %, read as "
                + (reading or "the study says")
                + ".",
            }


def by_range(
    judge: CellJudge, trial: Trial, rows: Sequence[dict[str, object]], rung: StudyPart, count: int
) -> None:
    """Judge the numbers whose tolerance is a rank by the range of replicates of a set-up.

    Parameters
    ----------
    judge, trial, rung
        What was found, and what can be judged.
    rows
        Of the numbers; `inside` and `reason` are set anew.
    count
        How many replicates are run.
    """
    cells = {cell.key: cell for cell in judge.reader.cells if cell.cell.tolerance.rank is not None}
    if not cells:
        return
    results = judge.bench.replicated(trial.set_up, rung, count)
    arrays = judge.reader.printed(results, count, rung.cells)
    readings = read_as(trial, judge)
    ranges: dict[tuple[str, str, str], tuple[float, float]] = {}
    for family, read, array in zip(judge.reader.families, readings, arrays, strict=True):
        places = [place for place in family.cells if place in set(rung.cells)]
        for number, place in enumerate(places):
            cell = judge.reader.cells[place]
            column = family.combinations.index(read.get(cell.table, ()))
            values = array[:, number, column]
            if not np.isnan(values).all():
                ranges[cell.key] = float(np.nanmin(values)), float(np.nanmax(values))
    for row in rows:
        key = str(row["table"]), str(row["row"]), str(row["column"])
        if key in cells:
            low, high = ranges.get(key, (math.nan, math.nan))
            slack = cells[key].half_ulp
            row["inside"] = low - slack <= cells[key].value <= high + slack
            row["reason"] = f"Between {low:g} and {high:g} in {count} replicates."


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


def leaving_out(judge: CellJudge, found: Found, rung: StudyPart) -> list[Leaving]:
    """Return what leaving each atom out does, readings included, on what was seen."""
    leaving = []
    for (atom, level), trial in zip(found.best.set_up, found.waterfall, strict=True):
        lost = trial.total - found.best.total
        leaving.append(Leaving(atom, level, lost, inside_count(judge, trial, rung)))
    scores = judge.scores(rung)
    for pair in dict.fromkeys(p for choice in found.best.readings for p in choice.pairs):
        changed, lost = found.best, 0.0
        choices = []
        for score, array, choice in _with_choice(found.best, scores):
            if pair not in choice.pairs:
                choices.append(choice)
                continue
            # The best reading that does not use the atom.
            kept = _without(score, pair)
            errors = judge.errors(score, array).copy()
            errors[:, ~kept] = 1e6
            choices.append(score.best(errors))
            lost += (choices[-1].data_bits + choices[-1].bits) - (choice.data_bits + choice.bits)
        changed = replace(found.best, readings=tuple(choices))
        leaving.append(Leaving(*pair, lost, inside_count(judge, changed, rung)))
    return leaving


def _with_choice(trial: Trial, scores: Sequence[FamilyScore]) -> Iterator[tuple[Any, Any, Any]]:
    chosen = iter(trial.readings)
    for score, array in zip(scores, trial.printed, strict=True):
        if score.places:
            yield score, array, next(chosen)


def _without(score: FamilyScore, pair: tuple[str, str]) -> Any:
    """Return which readings of a family do not use an atom at a level."""
    atom, level = pair[0].split("@")[0], pair[1]
    if level == "as_stated":
        return np.array([atom in dict(c) for c in score.family.combinations])
    return np.array([(atom, level) not in c for c in score.family.combinations])


def inside_count(judge: CellJudge, trial: Trial, rung: StudyPart) -> int:
    """Return how many numbers of a rung are inside at a trial, under its readings."""
    count = 0
    for score, array, choice in _with_choice(trial, judge.scores(rung)):
        for row, (place, column) in enumerate(zip(score.places, choice.column, strict=True)):
            count += judge.reader.inside(place, float(array[row, column]))
    return count


def word_of(
    gain_bits: float,
    null_p: float,
    seen: Share,
    unseen: Share,
    leaving: Sequence[Leaving],
    settings: Any,
) -> tuple[str, tuple[str, ...]]:
    """Return what the best is called, and why it is no more than that."""
    if gain_bits <= 0:
        return NONE_FOUND, ("No change shortens the description by more than it takes to name.",)
    if null_p > settings.significance:
        return NONE_FOUND, (
            f"A search over the same runs does as well on shuffled deviations (p = {null_p:.2g}).",
        )
    reasons = []
    held = unseen.after / unseen.cells if unseen.cells else 0.0
    wanted = settings.unseen_holds_at_least * (seen.after / seen.cells if seen.cells else 0.0)
    if held < wanted or unseen.after < unseen.before:
        reasons.append(
            f"It does not hold on what the search did not see: {unseen.after} of {unseen.cells} "
            f"inside (defaults {unseen.before})."
        )
    idle = [one.atom for one in leaving if one.bits <= 0]
    if idle:
        reasons.append(f"Not every atom pays for itself: {', '.join(idle)}.")
    return (BEST_GUESS, tuple(reasons)) if reasons else (EXPLANATION, ())


def judged_claims(
    study: Study, results: Results, readings: Mapping[tuple[str, str, str], Reading]
) -> dict[str, str]:
    """Return the verdict on each claim whose experiments were run.

    Parameters
    ----------
    study, results
        The study, with its own defaults, and the results of one set-up.
    readings
        Experiment, metric and aggregate to what a table of them is read as: a claim on the same
        quantity is read so too.
    """
    ran = set(results.design["experiment"])
    found = {}
    for claim in study.claims:
        quantities = claim.quantities()
        if quantities and all(wanted.experiment in ran for wanted in quantities):
            read = _read_claim(claim, readings)
            rows, _ = evaluate_claim(study, read, results)
            found[claim.id] = str(rows[0]["verdict"])
    return found


def _read_claim(claim: Claim, readings: Mapping[tuple[str, str, str], Reading]) -> Claim:
    if not readings:
        return claim
    document = _read(json.loads(claim.model_dump_json()), readings)
    return Claim.model_validate_json(json.dumps(document))


def _read(value: Any, readings: Mapping[tuple[str, str, str], Reading]) -> Any:
    if isinstance(value, list):
        return [_read(item, readings) for item in value]
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
    return {name: _read(item, readings) for name, item in value.items()}


def table_readings(judge: CellJudge, trial: Trial) -> dict[tuple[str, str, str], Reading]:
    """Return what tables are read as, by what the study says they are; the first of a kind."""
    found: dict[tuple[str, str, str], Reading] = {}
    reader: Reader = judge.reader
    for family, readings in zip(reader.families, read_as(trial, judge), strict=True):
        for place in family.cells:
            cell = reader.cells[place]
            reading = reader.reading(readings.get(cell.table, ()))
            wanted = cell.quantity
            if reading is not None:
                key = (wanted.experiment, wanted.metric, wanted.aggregate)
                found.setdefault(key, reading)
    return found


def impossible(judge: CellJudge, trial: Trial) -> int:
    """Return how many printed numbers break a bound of a trial's set-up as the trial reads them."""
    read, study = [], judge.bench.space.on(trial.set_up)
    for family, readings in zip(judge.reader.families, read_as(trial, judge), strict=True):
        for place in family.cells:
            cell = judge.reader.cells[place]
            reading = judge.reader.reading(readings.get(cell.table, ()))
            read.append(as_read(study, cell, reading) if reading else cell)
    found = audit_study(study, read)
    return len({(f.table, f.row, f.column) for f in found if f.finding == Verdict.IMPOSSIBLE})


def of_defaults(trial: Trial) -> Trial:
    """Return a trial at the documented defaults, every number read as the study says."""
    assert trial.set_up == DEFAULTS
    stated = tuple(
        replace(
            choice,
            tables=dict.fromkeys(choice.tables, ()),
            column=(0,) * len(choice.column),
            pairs=(),
            bits=0.0,
        )
        for choice in trial.readings
    )
    return replace(trial, readings=stated)
