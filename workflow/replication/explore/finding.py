"""How good a search's best explanation is: matches, held-out data, claims, bounds, and chance.

The permutation test asks how often a search over the same runs fits shuffled data as well. For
numbers, the deviations of the defaults are the noise: they are shuffled over the cells with random
signs, which keeps their sizes and breaks their pattern. For claims, each claim's verdicts are
shuffled over the configurations, which keeps how often each holds and breaks which hold together.
Then the best of all configurations that were tried, under the best interpretation, is searched
again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from replication.explore.score import (
    MOST_LOG_RATIO,
    Choice,
    Combination,
    Numbers,
    deviations,
    log_values,
    matches,
)
from replication.explore.search import EQUALLY_GOOD_BITS, Search, kinds
from replication.explore.trial import (
    DEFAULTS,
    VERDICT_BITS,
    CellJudge,
    ClaimJudge,
    StudyPart,
    Trial,
    is_held_out,
    verdicts,
)
from replication.metrics.results import Results
from replication.study.claim_model import Claim
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.audit import audit_study, impossible_cells
from replication.verdicts.cause import Interpretation, as_read

#: One number in ten lies outside the range of 19 replicates by chance.
REPLICATES = 19
#: Best configurations by shared interpretations for which exceptions are tried too.
_SEARCHED = 4
#: A number by table, row and column.
Key = tuple[str, str, str]
_Rows = list[dict[str, Any]]


def judge_finding(search: Search, best: Trial) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the judgement on a search's best, and its rows of explained_cells.csv (cells only).

    As in explanation.json: `gain_bits` is how much shorter it is than the defaults and `null_p` the
    probability of that by chance; `seen` and `held_out` count matches before and after; `causes`
    says for each how much longer the description gets without it, and what still matches (an
    exception for a table is `cause@table`); `impossible` has the printed numbers that break a
    bound, as the study reads them and under the explanation; `equally_good` fit as well without one
    of its causes.
    """
    judge, last = search.judge, search.stages[-1]
    (on_first,) = search.evaluate([best.configuration], search.stages[0])
    causes, rivals = _leaving_out(search, best), search.rivals(best)
    if isinstance(judge, CellJudge):
        found, before, after = _by_cells(search, judge, best)
        found["null_p"] = _cells_p(search, judge, on_first)
        rivals += _other_readings(search, judge, best)
    else:
        found, before, after = _by_claims(search, judge, best)
        found["null_p"] = _claims_p(search, on_first)
    found |= {
        "seen": _share(before, after, seen=True),
        "held_out": _share(before, after, seen=False),
        "causes": causes,
        "equally_good": [
            {"causes": trial.pairs, "worse_by_bits": round(trial.total - best.total, 3)}
            for trial in sorted(rivals)
        ],
        # As far as the budget allowed, they were compared on the last stage.
        "not_compared": sum((one, last.name) not in search.tried for one in search.near(best)),
    }
    return found, after if isinstance(judge, CellJudge) else []


def _by_cells(search: Search, judge: CellJudge, best: Trial) -> tuple[dict[str, Any], _Rows, _Rows]:
    runner, whole, both = search.runner, search.whole, (DEFAULTS, best.configuration)
    before, after = (search.evaluate([one], whole)[0] for one in both)
    stated = replace(search.defaults, readings=(Choice({}),) * len(best.readings))
    rows_before = _cell_rows(judge, stated, before, whole)
    rows = _cell_rows(judge, best, after, whole)
    broken = {
        "before": impossible(judge, stated, assumed=False),
        "after": impossible(judge, best, assumed=True),
    }
    for row in rows:
        if why := broken["after"].get((row["table"], row["row"], row["column"])):
            row["reason"] += f" Impossible in this set-up: {why}"
    claims_before, claims_after = (
        _judged_claims(runner.study, runner.results([one], whole), read)
        for one, read in zip(both, ({}, _table_readings(judge, best)), strict=True)
    )
    found = {
        "gain_bits": judge.stated_bits(search.defaults, search.stages[-1]) - best.total,
        "claims_before": claims_before,
        "claims_after": claims_after,
        "impossible": {
            when: [" ".join((*key[:2], why)) for key, why in numbers.items()]
            for when, numbers in broken.items()
        },
    }
    return found, rows_before, rows


def _by_claims(
    search: Search, judge: ClaimJudge, best: Trial
) -> tuple[dict[str, Any], _Rows, _Rows]:
    hidden = search.runner.explanations.held_out.claims
    before, after = (
        judge.verdicts(search.runner.results([trial.configuration], search.whole), search.whole)
        for trial in (search.defaults, best)
    )
    found = {
        "gain_bits": search.defaults.total - best.total,
        "claims_before": before,
        "claims_after": after,
        "impossible": {"before": [], "after": []},
    }
    rows_before, rows = (
        [
            {"used_in_search": claim not in hidden, "matches": holding({claim: verdict})}
            for claim, verdict in verdicts.items()
        ]
        for verdicts in (before, after)
    )
    return found, rows_before, rows


def holding(verdicts: Mapping[str, str], among: set[str] | None = None) -> int:
    """Return how many claims hold, of all or some of them."""
    known = verdicts.items()
    return sum(v == Verdict.REPRODUCED for claim, v in known if among is None or claim in among)


def _readings(judge: CellJudge, trial: Trial) -> dict[int, Combination]:
    """Return the interpretation of each cell, by its place."""
    cells, families = judge.cells, zip(judge.families, trial.readings, strict=True)
    return {
        place: choice.tables.get(cells[place].table, ())
        for family, choice in families
        for place in family.cells
    }


def _values(
    judge: CellJudge, trial: Trial, arrays: Sequence[Numbers], part: StudyPart
) -> Iterator[tuple[int, Numbers]]:
    """Yield the place of each cell of a part, and its values of `arrays` in a trial's reading."""
    read = _readings(judge, trial)
    for score, array in zip(judge.scores(part), arrays, strict=True):
        for row, place in enumerate(score.places):
            yield place, array[..., row, score.family.combinations.index(read[place])]


def _matches(judge: CellJudge | ClaimJudge, trial: Trial, part: StudyPart) -> int:
    if isinstance(judge, ClaimJudge):
        return holding(trial.verdicts)
    values = _values(judge, trial, trial.printed, part)
    return sum(bool(matches(judge.cells[place], value)) for place, value in values)


def _cell_rows(judge: CellJudge, trial: Trial, ran: Trial, part: StudyPart) -> list[dict[str, Any]]:
    """Return a row of explained_cells.csv for each number, under the interpretations of a trial.

    They were chosen on what the search saw; `ran` is the same configuration on `part`, which has
    the held-out cells too. A number of one published run is compared with the range of replicates.
    """
    runner, cells, read = judge.runner, judge.cells, _readings(judge, trial)
    ranges: dict[int, Numbers] = {}
    if any(cell.cell.tolerance.factor is not None for cell in cells):
        results = runner.results([trial.configuration], part, REPLICATES)
        arrays = judge.printed(results, REPLICATES, part.cells)
        ranges = {
            place: np.array([np.fmin.reduce(values), np.fmax.reduce(values)])
            for place, values in _values(judge, trial, arrays, part)
            if cells[place].cell.tolerance.factor is not None
        }
    rows = []
    for place, values in _values(judge, trial, ran.printed, part):
        cell, value = cells[place], float(values)
        off = value / cell.value - 1 if cell.value else math.nan
        how = ", ".join(f"{cause}={level}" for cause, level in read[place])
        matched = bool(matches(cell, value))
        reason = f"Deviation {100 * off:+.1f} %, read as {how or 'the study says'}."
        if place in ranges:
            low, high = ranges[place].tolist()
            matched = low - cell.half_ulp <= cell.value <= high + cell.half_ulp
            reason = f"Between {low:g} and {high:g} in {REPLICATES} replicates."
        rows.append(
            {
                "study": runner.study.id,
                **{name: getattr(cell, name) for name in ("table", "row", "column", "unit")},
                "engine": runner.machine.engine.name,
                "published": cell.value,
                "reproduced_mean": value,
                "matches": matched,
                "used_in_search": not is_held_out(runner.explanations, cell),
                "reason": reason,
            }
        )
    return rows


def _share(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], seen: bool
) -> dict[str, Any]:
    found: dict[str, Any] = {"cells": sum(row["used_in_search"] is seen for row in after)}
    for when, rows in (("before", before), ("after", after)):
        chosen = [row for row in rows if row["used_in_search"] is seen]
        numbers = [row for row in chosen if row.get("published")]
        off = [abs(row["reproduced_mean"] / row["published"] - 1) for row in numbers]
        median = float(np.nanmedian(off)) if off else math.nan
        found[when] = sum(row["matches"] for row in chosen)
        found[f"median_{when}"] = None if math.isnan(median) else median
    return found


def _leaving_out(search: Search, best: Trial) -> list[dict[str, Any]]:
    """Return the effect of leaving each cause out, on what the search saw.

    Without a simulated cause the best interpretations are chosen again; without an interpretation
    all other causes stay.
    """
    stage, judge = search.stages[-1], search.judge
    waterfall = zip(best.configuration, search.waterfall(best), strict=True)
    without = [(pair, trial.total - best.total, trial) for pair, trial in waterfall]
    scores = judge.scores(stage) if isinstance(judge, CellJudge) else []
    for pair in dict.fromkeys(pair for choice in best.readings for pair in choice.pairs):
        lost, choices = 0.0, []
        for score, printed, choice in zip(scores, best.printed, best.readings, strict=True):
            less = dict(score.without_each(choice, score.errors(printed))).get(pair, choice)
            lost += less.total - choice.total
            choices.append(less)
        without.append((pair, lost, replace(best, readings=tuple(choices))))
    return [
        {"cause": cause, "level": level, "bits": bits, "matches": _matches(judge, trial, stage)}
        for (cause, level), bits, trial in without
    ]


def _other_readings(search: Search, judge: CellJudge, best: Trial) -> list[Trial]:
    """Return the best with other interpretations that fit as well without one of its causes."""
    found, needed = [], kinds(best)
    scores = judge.scores(search.stages[-1])
    for number, (score, printed) in enumerate(zip(scores, best.printed, strict=True)):
        bits = score.shared_bits(score.errors(printed))
        for combination, total in zip(score.family.combinations, bits.tolist(), strict=True):
            readings = list(best.readings)
            more_bits = total - readings[number].total
            readings[number] = Choice({}, combination, pairs=combination)
            other = replace(best, readings=tuple(readings), data_bits=best.data_bits + more_bits)
            if more_bits <= EQUALLY_GOOD_BITS and not needed <= kinds(other):
                found.append(other)
    return found


def _judged_claims(
    study: Study, results: Results, readings: Mapping[Key, Interpretation]
) -> dict[str, str]:
    """Return the verdict on each claim whose experiments were run.

    `readings` are the interpretations of tables by experiment, metric and aggregate; they apply to
    claims on the same quantity too.
    """

    def read_alike(part: dict[str, Any]) -> dict[str, Any]:
        place, metric, how = (str(part.get(name)) for name in ("experiment", "metric", "aggregate"))
        if (reading := readings.get((place, metric, how))) is None:
            return part
        changed = {"metric", "aggregate", "flows", "window_s"}
        return part | reading.model_dump(mode="json", include=changed, exclude_none=True)

    ran, read = set(results.design["experiment"]), []
    for claim in study.claims:
        if all(wanted.experiment in ran for wanted in claim.quantities()):
            document = json.loads(claim.model_dump_json(), object_hook=read_alike)
            read.append(Claim.model_validate_json(json.dumps(document)))
    return verdicts(study, read, results)


def _table_readings(judge: CellJudge, trial: Trial) -> dict[Key, Interpretation]:
    """Return the interpretations by the quantity that they replace; the first of each."""
    found: dict[Key, Interpretation] = {}
    for place, combination in _readings(judge, trial).items():
        wanted = judge.cells[place].quantity
        if combination:
            key = (wanted.experiment, wanted.metric, wanted.aggregate)
            found.setdefault(key, judge.reading(combination))
    return found


def impossible(judge: CellJudge, trial: Trial, assumed: bool) -> dict[Key, str]:
    """Return the printed numbers that break a bound of a trial's configuration, and why.

    With `assumed` the bounds include the study's assumptions, else only what the paper states.
    """
    study, cells = judge.runner.on(trial.configuration), judge.cells
    read = [
        as_read(study, cells[place], judge.reading(combination))
        for place, combination in _readings(judge, trial).items()
    ]
    return impossible_cells(audit_study(study, read, assumed=assumed))


def _cells_p(search: Search, judge: CellJudge, best: Trial) -> float:
    stage = search.stages[0]
    tried, scores = search.at_stage(stage), judge.scores(stage)
    defaults = search.tried[DEFAULTS, stage.name]
    gain = judge.stated_bits(defaults, stage) - best.total
    names = np.array([judge.runner.bits(trial.configuration) for trial in tried])
    start = [trial.configuration for trial in tried].index(DEFAULTS)
    families = []
    for number, score in enumerate(scores):
        printed = np.stack([trial.printed[number] for trial in tried])
        logs = log_values(printed, score.slack[:, None])
        ours = log_values(defaults.printed[number][:, 0], score.slack)
        # Undefined values count as the largest deviation.
        residuals = np.nan_to_num(score.published - ours, nan=MOST_LOG_RATIO)
        residuals = np.clip(residuals, -MOST_LOG_RATIO, MOST_LOG_RATIO)
        families.append((score, logs, np.nan_to_num(ours), residuals))

    def as_good(random: np.random.Generator) -> bool:
        """Return whether the best gain over the defaults for shuffled numbers is as large."""
        totals, errors, stated = names.copy(), [], 0.0
        for score, logs, ours, residuals in families:
            signs = random.choice([-1.0, 1.0], size=len(residuals))
            false = ours + random.permutation(residuals) * signs
            errors.append(deviations(logs, false[:, None]))
            shared = score.shared_bits(errors[-1])
            totals += shared.min(axis=-1)
            stated += float(shared[start, 0])
        chosen = {start, *np.argsort(totals, kind="stable")[:_SEARCHED].tolist()}
        best = [
            names[n]
            + sum(score.best(error[n]).total for score, error in zip(scores, errors, strict=True))
            for n in chosen
        ]
        return float(stated - min(best)) >= gain - 1e-9

    return _chance(search, as_good)


def _chance(search: Search, as_good: Callable[[np.random.Generator], bool]) -> float:
    random = np.random.Generator(np.random.PCG64(search.settings.seed))
    count = search.settings.explanation.permutations
    return (1 + sum(as_good(random) for _ in range(count))) / (1 + count)


def _claims_p(search: Search, best: Trial) -> float:
    tried, claims = search.at_stage(search.stages[0]), sorted(best.verdicts)
    names = np.array([trial.bits for trial in tried])
    bits = np.array([[VERDICT_BITS[t.verdicts[claim]] for claim in claims] for t in tried])

    def as_good(random: np.random.Generator) -> bool:
        totals = random.permuted(bits, axis=0).sum(axis=1) + names
        return float(totals.min()) <= best.total + 1e-9

    return _chance(search, as_good)
