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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from replication.explore.broken_claims import broken_claims
from replication.explore.cause import CONTRADICTS, Interpretation, as_read
from replication.explore.explained import (
    HELD_OUT,
    REPEATED,
    SEEN,
    EquallyGood,
    ExplainedCell,
    Finding,
    Impossible,
    OnData,
    Part,
    UsedCause,
)
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
from replication.metrics.metric import defined
from replication.study.claim_model import Claim
from replication.study.verdict import Verdict
from replication.verdicts.audit import audit_study, impossible_cells

#: One number in ten lies outside the range of 19 replicates by chance.
REPLICATES = 19
#: Best configurations by shared interpretations for which exceptions are tried too.
_SEARCHED = 4
#: Table, row and column.
CellKey = tuple[str, str, str]


class Scored(NamedTuple):
    """A number or claim under a configuration: its part, whether it matches, and its error."""

    part: str
    matches: bool
    error: float


def judge_finding(search: Search, best: Trial) -> tuple[Finding, list[ExplainedCell]]:
    """Return the judgement on a search's best, and its rows of explained_cells.csv (cells only)."""
    judge, last, coupled = search.judge, search.stages[-1], search.coupled
    causes = _leaving_out(search, best)
    rivals = search.rivals(best)
    if isinstance(judge, CellJudge):
        on_data, cells = _by_cells(search, judge, best)
        rivals += _other_readings(search, judge, best)
    else:
        on_data, cells = _by_claims(search, best), []
    finding = Finding(
        **vars(on_data),
        reasons=[],
        bits=round(best.bits, 3),
        coupled=coupled.title if coupled and search.is_coupled(best.configuration) else "",
        causes=causes,
        contradicts=[cause.cause for cause in causes if cause.plausibility in CONTRADICTS],
        suggested_by=list(dict.fromkeys(cause.suggested_by for cause in causes)),
        equally_good=[_rival(trial, best) for trial in sorted(rivals)],
        # As far as the budget allowed, they were compared on the last stage.
        not_compared=sum((near, last.name) not in search.tried for near in search.near(best)),
    )
    return finding, cells


def _rival(trial: Trial, best: Trial) -> EquallyGood:
    return EquallyGood(list(trial.pairs), round(trial.total - best.total, 3))


def _by_cells(search: Search, judge: CellJudge, best: Trial) -> tuple[OnData, list[ExplainedCell]]:
    stated = replace(search.defaults, readings=(Choice({}),) * len(best.readings))
    part_of = parts_of(judge.cells, search.stages[-1].cells)
    before = _explained_cells(search, judge, stated, part_of)
    claims_before = _judged_claims(search, judge, stated)
    impossible_before = impossible(judge, stated, assumed=False)
    after = _explained_cells(search, judge, best, part_of)
    claims_after = _judged_claims(search, judge, best)
    impossible_after = impossible(judge, best, assumed=True)
    results = judge.runner.results([best.configuration], search.whole)

    on_data = OnData(
        gain_bits=judge.stated_bits(search.defaults, search.stages[-1]) - best.total,
        null_p=_cells_p(search, judge, best),
        **_parts(_scored(before, part_of), _scored(after, part_of), np.median),
        claims_before=claims_before,
        claims_after=claims_after,
        impossible=Impossible(_in_words(impossible_before), _in_words(impossible_after)),
        broken=broken_claims(
            judge.runner.study,
            judge.cells,
            _claims_as_read(search, judge, best),
            partial(defined, results),
        ),
    )
    for number, cell in enumerate(after):
        if why := impossible_after.get(cell.key):
            reason = f"{cell.reason} Impossible in this set-up: {why}"
            after[number] = replace(cell, reason=reason)
    return on_data, after


def _in_words(impossible_numbers: Mapping[CellKey, str]) -> list[str]:
    return [f"{table} {row} {why}" for (table, row, _), why in impossible_numbers.items()]


def _by_claims(search: Search, best: Trial) -> OnData:
    before, after = _whole_verdicts(search, search.defaults), _whole_verdicts(search, best)
    hidden = search.runner.explanations.held_out.claims
    return OnData(
        gain_bits=search.defaults.total - best.total,
        null_p=_claims_p(search, best),
        **_parts(_scored_claims(before, hidden), _scored_claims(after, hidden), np.mean),
        claims_before=before,
        claims_after=after,
        # There are no printed numbers that could break a bound or hold a claim.
        impossible=Impossible([], []),
        broken=[],
    )


def _whole_verdicts(search: Search, trial: Trial) -> dict[str, str]:
    """Return the verdict on each claim, the held-out ones too."""
    runner, whole = search.runner, search.whole
    return verdicts(runner.study, whole.claims, runner.results([trial.configuration], whole))


def _scored_claims(judged: Mapping[str, str], hidden: Collection[str]) -> list[Scored]:
    most = max(VERDICT_BITS.values())
    scored = []
    for claim, verdict in judged.items():
        part = HELD_OUT if claim in hidden else SEEN
        scored.append(Scored(part, verdict == Verdict.REPRODUCED, VERDICT_BITS[verdict] / most))
    return scored


def _scored(cells: Sequence[ExplainedCell], part_of: Mapping[CellKey, str]) -> list[Scored]:
    return [Scored(part_of[cell.key], cell.matches, abs(cell.deviation)) for cell in cells]


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


def _explained_cells(
    search: Search, judge: CellJudge, trial: Trial, part_of: Mapping[CellKey, str]
) -> list[ExplainedCell]:
    """Return the row of each number, the held-out ones too.

    The interpretations are those of a trial, chosen on what the search saw. A number of one
    published run is compared with the range of replicates.
    """
    runner, whole, rows = judge.runner, search.whole, []
    (ran,) = search.evaluate([trial.configuration], whole)
    replicates: Sequence[Numbers] = ran.printed
    if any(cell.cell.tolerance.factor is not None for cell in judge.cells):
        results = runner.results([trial.configuration], whole, REPLICATES)
        replicates = judge.printed(results, REPLICATES, judge.scores(whole))
    ranges = _values(judge, trial, replicates, whole)
    for cell, read, printed in _values(judge, trial, ran.printed, whole):
        _, _, values = next(ranges)
        part = part_of[cell.key]
        row = ExplainedCell(
            study=runner.study.id,
            table=cell.table,
            row=cell.row,
            column=cell.column,
            engine=runner.machine.engine.name,
            unit=cell.unit,
            published=cell.value,
            reproduced_mean=float(printed),
            matches=bool(matches(cell, float(printed))),
            used_in_search=part == SEEN,
            reason="",
        )
        how = ", ".join(f"{cause}={level}" for cause, level in read) or "the study says"
        reason = f"Deviation {100 * row.deviation:+.1f} %, read as {how}."
        if cell.cell.tolerance.factor is not None:
            low, high = float(np.fmin.reduce(values)), float(np.fmax.reduce(values))
            is_inside = low - cell.half_ulp <= cell.value <= high + cell.half_ulp
            row = replace(row, matches=is_inside)
            reason = f"Between {low:g} and {high:g} in {REPLICATES} replicates."
        if part == REPEATED:
            reason += " Not held out: a searched row prints the same number."
        rows.append(replace(row, reason=reason))
    return rows


def parts_of(cells: Sequence[MappedCell], seen: Sequence[MappedCell]) -> dict[CellKey, str]:
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


def _parts(
    before: Sequence[Scored], after: Sequence[Scored], average: Callable[[list[float]], Any]
) -> dict[str, Part]:
    """Return matches and the average error before and after, by part."""
    parts = {}
    for name in (SEEN, HELD_OUT, REPEATED):
        then = [scored for scored in before if scored.part == name]
        now = [scored for scored in after if scored.part == name]
        parts[name] = Part(
            cells=len(now),
            before=sum(scored.matches for scored in then),
            after=sum(scored.matches for scored in now),
            error_before=_error(then, average),
            error_after=_error(now, average),
        )
    return parts


def _error(part: Sequence[Scored], average: Callable[[list[float]], Any]) -> float | None:
    errors = [scored.error for scored in part if not math.isnan(scored.error)]
    return float(average(errors)) if errors else None


def _leaving_out(search: Search, best: Trial) -> list[UsedCause]:
    """Return each cause with its texts and the effect of leaving it out, on what the search saw.

    Without a simulated cause the best interpretations are chosen again; without an interpretation
    all other causes stay.
    """
    stage, judge = search.stages[-1], search.judge
    causes = []
    for pair, trial in zip(best.configuration, search.waterfall(best), strict=True):
        matched = _matches(judge, trial, stage)
        causes.append(_used_cause(search, best, pair, trial.total - best.total, matched))
    scores = judge.scores(stage) if isinstance(judge, CellJudge) else []
    pairs: dict[tuple[str, str], None] = {}
    for choice in best.readings:
        pairs |= dict.fromkeys(choice.pairs)
    for pair in pairs:
        lost, choices = 0.0, []
        for score, printed, choice in zip(scores, best.printed, best.readings, strict=True):
            less = dict(score.without_each(choice, score.errors(printed))).get(pair, choice)
            lost += less.total - choice.total
            choices.append(less)
        matched = _matches(judge, replace(best, readings=tuple(choices)), stage)
        causes.append(_used_cause(search, best, pair, lost, matched))
    return causes


def _used_cause(
    search: Search, best: Trial, pair: tuple[str, str], bits: float, matched: int
) -> UsedCause:
    """Return a cause and level of the best; without it so many bits are lost and numbers match."""
    name, level = pair
    explanations = search.runner.explanations
    cause = explanations.by_id[name.partition("@")[0]]
    added, suggested_by = explanations.origin(cause.id, level, dict(best.configuration))
    return UsedCause(
        cause=name,
        level=level,
        bits=bits,
        matches=matched,
        title=cause.title_at(level),
        reason=cause.reason,
        source=cause.source,
        plausibility=cause.plausibility or "",
        evidence=cause.evidence or "",
        outside_ledger=cause.outside_ledger or "",
        added=added.date,
        results_seen=added.results,
        suggested_by=suggested_by,
    )


def _other_readings(search: Search, judge: CellJudge, best: Trial) -> list[Trial]:
    """Return the best with other interpretations that fit as well without one of its causes."""
    others, needed = [], kinds(best)
    scores = judge.scores(search.stages[-1])
    for number, (score, printed) in enumerate(zip(scores, best.printed, strict=True)):
        bits = score.shared_bits(score.errors(printed))
        for combination, total in zip(score.family.combinations, bits.tolist(), strict=True):
            readings = list(best.readings)
            more_bits = total - readings[number].total
            readings[number] = Choice({}, combination)
            other = replace(best, readings=tuple(readings), data_bits=best.data_bits + more_bits)
            if more_bits <= EQUALLY_GOOD_BITS and not needed <= kinds(other):
                others.append(other)
    return others


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
        if claim.is_counted and all(part.experiment in ran for part in claim.quantities()):
            document = json.loads(claim.model_dump_json(), object_hook=read_alike)
            read.append(Claim.model_validate_json(json.dumps(document)))
    return read


def impossible(judge: CellJudge, trial: Trial, assumed: bool) -> dict[CellKey, str]:
    """Return the printed numbers that break a bound of a trial's configuration, and why.

    With `assumed` the bounds include the study's assumptions, else only what the paper states.
    """
    study = judge.runner.on(trial.configuration)
    read = [as_read(study, cell, reading) for cell, reading in _readings(judge, trial)]
    return impossible_cells(audit_study(study, read, assumed=assumed))


def _cells_p(search: Search, judge: CellJudge, finding: Trial) -> float:
    stage = search.stages[0]
    (best,) = search.evaluate([finding.configuration], stage)
    tried, scores = search.at_stage(stage), judge.scores(stage)
    defaults = search.tried[DEFAULTS, stage.name]
    gain = judge.stated_bits(defaults, stage) - best.total
    names = np.array([judge.runner.bits(trial.configuration) for trial in tried])
    start = [trial.configuration for trial in tried].index(DEFAULTS)
    families = []
    for number, score in enumerate(scores):
        printed = np.stack([trial.printed[number] for trial in tried])
        logs = log_values(printed, score.slack[:, None])
        measured = log_values(defaults.printed[number][:, 0], score.slack)
        # Undefined values count as the largest deviation.
        residuals = np.nan_to_num(score.published - measured, nan=MOST_LOG_RATIO)
        residuals = np.clip(residuals, -MOST_LOG_RATIO, MOST_LOG_RATIO)
        families.append((score, logs, np.nan_to_num(measured), residuals))

    def as_good(random: np.random.Generator) -> bool:
        """Return whether the best gain over the defaults for shuffled numbers is as large."""
        totals, errors, stated = names.copy(), [], 0.0
        for score, logs, measured, residuals in families:
            signs = random.choice([-1.0, 1.0], size=len(residuals))
            false = measured + random.permutation(residuals) * signs
            errors.append(deviations(logs, false[:, None]))
            shared = score.shared_bits(errors[-1])
            totals += shared.min(axis=-1)
            stated += float(shared[start, 0])
        least = math.inf
        for place in {start, *np.argsort(totals, kind="stable")[:_SEARCHED].tolist()}:
            scored = zip(scores, errors, strict=True)
            bits = sum(score.best(error[place]).total for score, error in scored)
            least = min(least, names[place] + bits)
        return float(stated - least) >= gain - 1e-9

    return _chance(search, as_good)


def _chance(search: Search, as_good: Callable[[np.random.Generator], bool]) -> float:
    random = np.random.Generator(np.random.PCG64(search.settings.seed))
    count = search.settings.explanation.permutations
    return (1 + sum(as_good(random) for _ in range(count))) / (1 + count)


def _claims_p(search: Search, finding: Trial) -> float:
    (best,) = search.evaluate([finding.configuration], search.stages[0])
    tried = search.at_stage(search.stages[0])
    claims = sorted(best.verdicts)
    names = np.array([trial.bits for trial in tried])
    bits = np.array([[VERDICT_BITS[trial.verdicts[name]] for name in claims] for trial in tried])

    def as_good(random: np.random.Generator) -> bool:
        totals = random.permuted(bits, axis=0).sum(axis=1) + names
        return float(totals.min()) <= best.total + 1e-9

    return _chance(search, as_good)
