"""Explains a study: searches its best explanation, judges it on held-out data, and writes it.

Where the study declares coupled causes, the best with them and the best without are both judged
and written, the shorter description first. The result is an *explanation* if it meets all four
conditions (`failed_conditions`), a *best guess* if it fails one of them, else *none found*.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from replication.base.errors import InputError
from replication.base.table import flat, write_table
from replication.design.config import explanations_path, load_sensitivity
from replication.design.input_hashes import input_hashes
from replication.engines.model import Engine
from replication.explore.cause import AGAINST_DATA, load_explanations
from replication.explore.explained import (
    EXPLANATIONS,
    CauseRow,
    ExplainedCell,
    Explanation,
    ExplanationRow,
    Finding,
    Part,
    Searched,
)
from replication.explore.finding import judge_finding
from replication.explore.machine import Machine, write_json, write_scenarios
from replication.explore.score import PAYS_BITS
from replication.explore.search import Search
from replication.explore.trial import Trial
from replication.study.verdict import Verdict

#: Files of the result and of its scenarios, which `replicate run` starts.
NAME, SCENARIOS = "explanation.json", "explained_scenarios.json"
#: Results of a search.
EXPLANATION, BEST_GUESS, NONE_FOUND = "explanation", "best guess", "none found"
#: Largest p value of an explanation in the permutation test.
SIGNIFICANCE = 0.05


def explain_study(root: Path, name: str, folder: Path, machine: Machine) -> None:
    """Search a study's best explanation; write explanation.json and its tables to `folder`."""
    causes = load_explanations(root, name)
    if causes is None:
        raise InputError(f"{explanations_path(root, name)}: no such file; study {name} needs one")
    search = Search.begin(root, causes, machine)
    trials = search.run()
    findings, cells = _findings(search, trials)
    searched = _searched(search)
    best, *others = findings
    explanation = Explanation(
        **vars(searched),
        **vars(best),
        others=others,
        input_hashes=sources(root, name, machine.engine),
    )
    write_json(folder / NAME, asdict(explanation))
    tables: dict[str, Sequence[object]] = {
        "explanations": [_row(searched, finding) for finding in findings],
        "explanation_causes": flat(_cause_rows(name, finding) for finding in findings),
        "explained_cells": cells,
    }
    for table, columns in EXPLANATIONS.items():
        write_table(folder / f"{table}.csv", map(vars, tables[table]), columns)
    runs = search.runner.runs(trials[0].configuration, search.whole) or []
    write_scenarios(folder / SCENARIOS, runs)


def _findings(search: Search, trials: Sequence[Trial]) -> tuple[list[Finding], list[ExplainedCell]]:
    """Return the judged best of a search, and the cells of the first.

    A second one is returned only if it explains something.
    """
    findings: list[Finding] = []
    cells: list[ExplainedCell] = []
    for called, trial in zip(("best", "alternative"), trials, strict=False):
        finding, explained = judge_finding(search, trial)
        result, reasons = result_of(finding, search.runner.explanations.score)
        if not findings or result != NONE_FOUND:
            judged = replace(finding, explanation=called, result=result, reasons=reasons)
            findings.append(replace(judged, gain_bits=round(finding.gain_bits, 3)))
            cells = cells or explained
    return findings, cells


def result_of(finding: Finding, score: str) -> tuple[str, list[str]]:
    """Return the result of a search that scored cells or claims, and why it is no explanation."""
    if finding.gain_bits <= 0 or not finding.causes:
        return NONE_FOUND, [
            "No change that was tried shortens the description by more than it takes to name."
        ]
    reasons = failed_conditions(finding, score)
    return (EXPLANATION, BEST_GUESS, NONE_FOUND)[min(len(reasons), 2)], reasons


def failed_conditions(finding: Finding, score: str) -> list[str]:
    """Return a sentence for each condition of an explanation that a search's best fails.

    Every cause is worth two bits; shuffled data are rarely fitted as well; held-out matches do not
    fall and the held-out error falls; no cause contradicts the paper's text or its authors' data.
    """
    reasons = []
    if unpaid := [cause.title for cause in finding.causes if cause.bits < PAYS_BITS]:
        reasons.append(f"Some causes do not pay for themselves: {'; '.join(unpaid)}.")
    if finding.null_p > SIGNIFICANCE:
        p = f"p = {finding.null_p:.2g}"
        reasons.append(f"A search over the same runs fits shuffled deviations as well ({p}).")
    if not _is_confirmed(finding.held_out):
        words = _held_out_in_words(finding.held_out, score)
        reasons.append(f"Held-out data do not confirm it: {words}.")
    contradicting = [cause for cause in finding.causes if cause.cause in finding.contradicts]
    against_data = [c.title for c in contradicting if c.plausibility == AGAINST_DATA]
    against_text = [c.title for c in contradicting if c.plausibility != AGAINST_DATA]
    if against_text:
        reasons.append(f"The paper's text contradicts it: {'; '.join(against_text)}.")
    if against_data:
        reasons.append(f"The authors' own data contradict it: {'; '.join(against_data)}.")
    return reasons


def _is_confirmed(held_out: Part) -> bool:
    before, after = held_out.error_before, held_out.error_after
    if before is None or after is None:
        return False
    return held_out.after >= held_out.before and after < before


def _held_out_in_words(held_out: Part, score: str) -> str:
    if not held_out.cells:
        return "nothing is held out"
    what = "matches" if score == "cells" else "claims that hold"
    error = "median error" if score == "cells" else "share of claims that fail"
    words = f"{what} go from {held_out.before} to {held_out.after} of {held_out.cells}"
    before, after = held_out.error_before, held_out.error_after
    if before is None or after is None:
        return words
    return f"{words}, and the {error} goes from {100 * before:.3g} % to {100 * after:.3g} %"


def _searched(search: Search) -> Searched:
    runner, causes = search.runner, search.runner.explanations
    used: set[str] = set()
    for trial in search.tried.values():
        used |= {cause for cause, _ in trial.configuration}
    if causes.score == "cells":
        # Every configuration is scored under all interpretations.
        used |= {cause.id for cause in causes.of_kind("reading")}
    testable = [cause.id for cause in causes.causes if cause.kind != "untestable"]
    return Searched(
        study=causes.study,
        engine=runner.machine.engine.name,
        score=causes.score,
        permutations=search.settings.explanation.permutations,
        configurations_tried=search.count,
        causes_tried=[cause for cause in testable if cause in used],
        causes_untried=[cause for cause in testable if cause not in used],
        untestable={c.id: c.untestable for c in causes.causes if c.untestable is not None},
        cpu_minutes=round(runner.costs.spent_s / 60, 2),
        budget_minutes=round(causes.cpu_budget_s / 60, 2),
    )


def _row(searched: Searched, finding: Finding) -> ExplanationRow:
    held_out = finding.held_out
    numbers = finding.parts if searched.score == "cells" else ()
    return ExplanationRow(
        study=searched.study,
        explanation=finding.explanation,
        result=finding.result,
        bits=finding.bits,
        null_p=finding.null_p,
        configurations_tried=searched.configurations_tried,
        cells=sum(part.cells for part in numbers),
        matches_before=sum(part.before for part in numbers) if numbers else None,
        matches_after=sum(part.after for part in numbers) if numbers else None,
        held_out=held_out.cells,
        held_out_matches_before=held_out.before,
        held_out_matches=held_out.after,
        held_out_error_before=held_out.error_before,
        held_out_error_after=held_out.error_after,
        claims_before=_reproduced(finding.claims_before),
        claims_after=_reproduced(finding.claims_after),
        contradicts="; ".join(finding.contradicts),
        suggested_by="; ".join(finding.suggested_by),
        cpu_minutes=searched.cpu_minutes,
    )


def _reproduced(verdicts: Mapping[str, str]) -> int:
    return list(verdicts.values()).count(Verdict.REPRODUCED)


def _cause_rows(study: str, finding: Finding) -> Iterator[CauseRow]:
    for cause in finding.causes:
        yield CauseRow(
            study=study,
            explanation=finding.explanation,
            cause=cause.cause,
            value=cause.level,
            bits=cause.bits,
            plausibility=cause.plausibility,
            evidence=cause.evidence or f"{cause.reason} Source: {cause.source}.",
        )


def sources(root: Path, name: str, engine: Engine) -> dict[str, str]:
    """Return the current hashes of all that decides a study's explanation."""
    settings = load_sensitivity(root)
    causes = load_explanations(root, name)
    decisive = [settings.seed, settings.explanation.decisive()]
    listed = causes and causes.decisive()
    return input_hashes(root, name, engine, settings=decisive, causes=listed)
