"""How good a search's best explanation is: matches, held-out data, claims, bounds, and chance.

The permutation test asks how often a search over the same runs fits shuffled data as well. For
numbers, the deviations of the defaults are the noise: they are shuffled over the cells with random
signs, which keeps their sizes and breaks their pattern. For claims, each claim's verdicts are
shuffled over the configurations, which keeps how often each holds and breaks which hold together.
Then the best of all configurations that were tried, under the best interpretation, is searched
again.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from replication.explore.broken_claims import broken_claims
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
    verdicts,
)
from replication.metrics.cell_map import MappedCell
from replication.metrics.metric import quantity
from replication.study.claim_model import Claim, Quantity
from replication.study.verdict import Verdict
from replication.verdicts.audit import audit_study, impossible_cells
from replication.verdicts.cause import CONTRADICTS, Interpretation, as_read

#: One number in ten lies outside the range of 19 replicates by chance.
REPLICATES = 19
#: Best configurations by shared interpretations for which exceptions are tried too.
_SEARCHED = 4
#: Parts of the numbers or claims: what the search scored, what it never saw, and what it never
#: scored but saw, since a searched row prints the same number.
SEEN, HELD_OUT, REPEATED = "seen", "held_out", "repeated"
_Rows = list[dict[str, Any]]


def judge_finding(search: Search, best: Trial) -> tuple[dict[str, Any], _Rows]:
    """Return the judgement on a search's best, and its rows of explained_cells.csv (cells only).

    As in explanation.json: `gain_bits` is how much shorter it is than the defaults and `null_p` the
    probability of that by chance; `seen`, `held_out` and `repeated` have matches and errors before
    and after; `causes` has the bits that each saves and what matches without it (an exception for a
    table is `cause@table`), `contradicts` those against the paper's text or its authors' data, and
    `suggested_by` whose they are; `broken` has the claims that the paper's numbers hold and it does
    not; `impossible` has the printed numbers that break a bound, as the study reads them and under
    the explanation; `equally_good` fit as well without one of its causes.
    """
    judge, last, coupled = search.judge, search.stages[-1], search.coupled
    causes, rivals = _leaving_out(search, best), search.rivals(best)
    if isinstance(judge, CellJudge):
        found, rows = _by_cells(search, judge, best)
        rivals += _other_readings(search, judge, best)
    else:
        found, rows = _by_claims(search, best), []
    found |= {
        "bits": round(best.bits, 3),
        "coupled": coupled.title if coupled and search.is_coupled(best.configuration) else "",
        "causes": causes,
        "contradicts": [one["cause"] for one in causes if one["plausibility"] in CONTRADICTS],
        "suggested_by": list(dict.fromkeys(one["suggested_by"] for one in causes)),
        "equally_good": [
            {"causes": trial.pairs, "worse_by_bits": round(trial.total - best.total, 3)}
            for trial in sorted(rivals)
        ],
        # As far as the budget allowed, they were compared on the last stage.
        "not_compared": sum((one, last.name) not in search.tried for one in search.near(best)),
    }
    return found, rows


def _by_cells(search: Search, judge: CellJudge, best: Trial) -> tuple[dict[str, Any], _Rows]:
    stated = replace(search.defaults, readings=(Choice({}),) * len(best.readings))
    claims, rows, beyond = {}, {}, {}
    for when, trial in (("before", stated), ("after", best)):
        rows[when] = _cell_rows(search, judge, trial)
        claims[f"claims_{when}"] = _judged_claims(search, judge, trial)
        beyond[when] = impossible(judge, trial, assumed=when == "after")
    for row in rows["after"]:
        if why := beyond["after"].get((row["table"], row["row"], row["column"])):
            row["reason"] += f" Impossible in this set-up: {why}"
    results = judge.runner.results([best.configuration], search.whole)

    def measured(wanted: Quantity) -> pd.DataFrame:
        return quantity(results, wanted).drop(columns="engine").dropna(subset="value")

    found = {
        "gain_bits": judge.stated_bits(search.defaults, search.stages[-1]) - best.total,
        "null_p": _cells_p(search, judge, best),
        "impossible": {
            when: [" ".join((*key[:2], why)) for key, why in numbers.items()]
            for when, numbers in beyond.items()
        },
        "broken": broken_claims(
            judge.runner.study, judge.cells, _claims_as_read(search, judge, best), measured
        ),
    }
    shares = _shares(**rows)
    return found | claims | shares, [_without_part(row) for row in rows["after"]]


def _by_claims(search: Search, best: Trial) -> dict[str, Any]:
    runner, whole = search.runner, search.whole
    hidden = runner.explanations.held_out.claims
    claims, rows = {}, {}
    for when, trial in (("before", search.defaults), ("after", best)):
        results = runner.results([trial.configuration], whole)
        claims[f"claims_{when}"] = found = verdicts(runner.study, whole.claims, results)
        rows[when] = [
            {
                "part": HELD_OUT if claim in hidden else SEEN,
                "matches": verdict == Verdict.REPRODUCED,
                "error": VERDICT_BITS[verdict] / max(VERDICT_BITS.values()),
            }
            for claim, verdict in found.items()
        ]
    judged = {
        "gain_bits": search.defaults.total - best.total,
        "null_p": _claims_p(search, best),
        "impossible": {"before": [], "after": []},
        # There are no printed numbers that could hold a claim.
        "broken": [],
    }
    return judged | claims | _shares(**rows)


def _readings(judge: CellJudge, trial: Trial) -> Iterator[tuple[MappedCell, Interpretation]]:
    """Yield each cell with its interpretation."""
    for family, choice in zip(judge.families, trial.readings, strict=True):
        for cell in family.cells:
            yield cell, judge.reading(choice.tables.get(cell.table, ()))


def _values(
    judge: CellJudge, trial: Trial, arrays: Sequence[Numbers], part: StudyPart
) -> Iterator[tuple[MappedCell, Combination, Numbers]]:
    """Yield each cell of a part, its interpretation in a trial, and its values of `arrays`."""
    for score, choice, array in zip(judge.scores(part), trial.readings, arrays, strict=True):
        for row, cell in enumerate(score.cells):
            read = choice.tables.get(cell.table, ())
            yield cell, read, array[..., row, score.family.combinations.index(read)]


def _matches(judge: CellJudge | ClaimJudge, trial: Trial, part: StudyPart) -> int:
    if isinstance(judge, ClaimJudge):
        return [*trial.verdicts.values()].count(Verdict.REPRODUCED)
    values = _values(judge, trial, trial.printed, part)
    return sum(bool(matches(cell, value)) for cell, _, value in values)


def _cell_rows(search: Search, judge: CellJudge, trial: Trial) -> _Rows:
    """Return a row of explained_cells.csv for each number, the held-out ones too.

    The interpretations are those of a trial, chosen on what the search saw. A number of one
    published run is compared with the range of replicates.
    """
    runner, part, rows = judge.runner, search.whole, []
    part_of = parts_of(judge.cells, search.stages[-1].cells)
    (ran,) = search.evaluate([trial.configuration], part)
    arrays: Sequence[Numbers] = ran.printed
    if any(cell.cell.tolerance.factor is not None for cell in judge.cells):
        results = runner.results([trial.configuration], part, REPLICATES)
        arrays = judge.printed(results, REPLICATES, judge.scores(part))
    single, replicates = (_values(judge, trial, one, part) for one in (ran.printed, arrays))
    for (cell, read, printed), (_, _, values) in zip(single, replicates, strict=True):
        value = float(printed)
        off = value / cell.value - 1 if cell.value else math.nan
        how = ", ".join(f"{cause}={level}" for cause, level in read)
        matched = bool(matches(cell, value))
        reason = f"Deviation {100 * off:+.1f} %, read as {how or 'the study says'}."
        if cell.cell.tolerance.factor is not None:
            low, high = float(np.fmin.reduce(values)), float(np.fmax.reduce(values))
            matched = low - cell.half_ulp <= cell.value <= high + cell.half_ulp
            reason = f"Between {low:g} and {high:g} in {REPLICATES} replicates."
        which = part_of[cell.key]
        if which == REPEATED:
            reason += " Not held out: a searched row prints the same number."
        rows.append(
            {
                "study": runner.study.id,
                **{name: getattr(cell, name) for name in ("table", "row", "column", "unit")},
                "engine": runner.machine.engine.name,
                "published": cell.value,
                "reproduced_mean": value,
                "matches": matched,
                "used_in_search": which == SEEN,
                "reason": reason,
                "part": which,
                "error": abs(off),
            }
        )
    return rows


def parts_of(
    cells: Sequence[MappedCell], seen: Sequence[MappedCell]
) -> dict[tuple[str, str, str], str]:
    """Return the part of each cell, if the search scored those `seen`.

    A number that a searched row prints in the same column of the same table is not held out.
    """
    searched = {cell.key for cell in seen}
    printed = {(cell.table, cell.column, cell.value) for cell in seen}
    parts = {}
    for cell in cells:
        repeated = (cell.table, cell.column, cell.value) in printed
        unseen = REPEATED if repeated else HELD_OUT
        parts[cell.key] = SEEN if cell.key in searched else unseen
    return parts


def _without_part(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of explained_cells.csv."""
    return {name: value for name, value in row.items() if name not in ("part", "error")}


def _shares(before: _Rows, after: _Rows) -> dict[str, dict[str, Any]]:
    """Return matches and error before and after, by part.

    The error of numbers is the median of the relative ones. That of claims is the mean: 0 if a
    claim is reproduced, half in direction only, 1 if not.
    """
    found: dict[str, dict[str, Any]] = {}
    for part in (SEEN, HELD_OUT, REPEATED):
        share: dict[str, Any] = {}
        found[part] = share
        for when, rows in (("before", before), ("after", after)):
            chosen = [row for row in rows if row["part"] == part]
            share["cells"] = len(chosen)
            share[when] = sum(row["matches"] for row in chosen)
            share[f"error_{when}"] = _error(chosen)
    return found


def _error(rows: _Rows) -> float | None:
    errors = [row["error"] for row in rows if not math.isnan(row["error"])]
    if not errors:
        return None
    of_numbers = "published" in rows[0]
    return float(np.median(errors) if of_numbers else np.mean(errors))


def _leaving_out(search: Search, best: Trial) -> list[dict[str, Any]]:
    """Return each cause with its texts and the effect of leaving it out, on what the search saw.

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
        {"cause": name, "level": level, "bits": bits, "matches": _matches(judge, trial, stage)}
        | _texts(search, name.partition("@")[0], level, dict(best.configuration))
        for (name, level), bits, trial in without
    ]


def _texts(
    search: Search, name: str, level: str, configuration: Mapping[str, str]
) -> dict[str, str]:
    """Return what is said of a cause of a configuration at a level."""
    explanations = search.runner.explanations
    cause = explanations.by_id[name]
    shown = {"reason", "source", "plausibility", "evidence", "outside_ledger"}
    texts = {key: text or "" for key, text in cause.model_dump(include=shown).items()}
    added, suggested_by = explanations.origin(name, level, configuration)
    return texts | {
        "title": cause.title_at(level),
        "added": added.date,
        "results_seen": added.results,
        "suggested_by": suggested_by,
    }


def _other_readings(search: Search, judge: CellJudge, best: Trial) -> list[Trial]:
    """Return the best with other interpretations that fit as well without one of its causes."""
    found, needed = [], kinds(best)
    scores = judge.scores(search.stages[-1])
    for number, (score, printed) in enumerate(zip(scores, best.printed, strict=True)):
        bits = score.shared_bits(score.errors(printed))
        for combination, total in zip(score.family.combinations, bits.tolist(), strict=True):
            readings = list(best.readings)
            more_bits = total - readings[number].total
            readings[number] = Choice({}, combination)
            other = replace(best, readings=tuple(readings), data_bits=best.data_bits + more_bits)
            if more_bits <= EQUALLY_GOOD_BITS and not needed <= kinds(other):
                found.append(other)
    return found


def _judged_claims(search: Search, judge: CellJudge, trial: Trial) -> dict[str, str]:
    """Return the verdict on each claim whose experiments were run."""
    results = judge.runner.results([trial.configuration], search.whole)
    return verdicts(judge.runner.study, _claims_as_read(search, judge, trial), results)


def _claims_as_read(search: Search, judge: CellJudge, trial: Trial) -> list[Claim]:
    """Return the claims whose experiments are run, as a trial reads their quantities.

    A table's interpretation applies to claims on the same quantity too; the first table's counts.
    """
    study, ran = judge.runner.study, search.whole.levels
    readings: dict[tuple[str, str, str], Interpretation] = {}
    for cell, reading in _readings(judge, trial):
        if reading != Interpretation():
            wanted = cell.quantity
            readings.setdefault((wanted.experiment, wanted.metric, wanted.aggregate), reading)

    def read_alike(part: dict[str, Any]) -> dict[str, Any]:
        place, metric, how = (str(part.get(name)) for name in ("experiment", "metric", "aggregate"))
        if (reading := readings.get((place, metric, how))) is None:
            return part
        changed = {"metric", "aggregate", "flows", "window_s"}
        return part | reading.model_dump(mode="json", include=changed, exclude_none=True)

    read = []
    for claim in study.claims:
        if claim.is_counted and all(one.experiment in ran for one in claim.quantities()):
            document = json.loads(claim.model_dump_json(), object_hook=read_alike)
            read.append(Claim.model_validate_json(json.dumps(document)))
    return read


def impossible(judge: CellJudge, trial: Trial, assumed: bool) -> dict[tuple[str, str, str], str]:
    """Return the printed numbers that break a bound of a trial's configuration, and why.

    With `assumed` the bounds include the study's assumptions, else only what the paper states.
    """
    study = judge.runner.on(trial.configuration)
    read = [as_read(study, cell, reading) for cell, reading in _readings(judge, trial)]
    return impossible_cells(audit_study(study, read, assumed=assumed))


def _cells_p(search: Search, judge: CellJudge, found: Trial) -> float:
    stage = search.stages[0]
    (best,) = search.evaluate([found.configuration], stage)
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


def _claims_p(search: Search, found: Trial) -> float:
    (best,) = search.evaluate([found.configuration], search.stages[0])
    tried, claims = search.at_stage(search.stages[0]), sorted(best.verdicts)
    names = np.array([trial.bits for trial in tried])
    bits = np.array([[VERDICT_BITS[t.verdicts[claim]] for claim in claims] for t in tried])

    def as_good(random: np.random.Generator) -> bool:
        totals = random.permuted(bits, axis=0).sum(axis=1) + names
        return float(totals.min()) <= best.total + 1e-9

    return _chance(search, as_good)
