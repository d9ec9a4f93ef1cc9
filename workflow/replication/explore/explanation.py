"""Explains a study: searches its best explanation, judges it on what was held out, writes it down.

Where the study declares coupled causes, the best with them and the best without are both judged
and written, the shorter description first. Each is an *explanation* if it beats the permutation
test, holds on what the search did not see, and every cause pays for itself; a *best guess* if it
gains and beats the test but fails one of the others; else *none found*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from replication.design.config import explanations_path, load_sensitivity
from replication.design.input_hashes import input_hashes, is_same
from replication.engines.model import Engine
from replication.explore.finding import Finding, holding, judge_finding
from replication.explore.machine import Machine
from replication.explore.score import PAYS_BITS
from replication.explore.search import Search
from replication.explore.trial import Trial
from replication.study.errors import InputError
from replication.study.files import write_text
from replication.study.scenario import canonical_json
from replication.study.storage.table import write_table
from replication.verdicts.cause import Explanations, load_explanations

#: What is found, and the scenarios of its configuration: `replicate run` starts any of them.
NAME, SCENARIOS = "explanation.json", "explained_scenarios.json"
#: What the best that was found is called.
EXPLANATION, BEST_GUESS, NONE_FOUND = "explanation", "best guess", "none found"
EXPLAINED_COLUMNS = (
    *("study", "table", "row", "column", "engine", "unit", "published", "reproduced_mean"),
    *("matches", "used_in_search", "reason"),
)
#: The tables of a study's folder, which are merged under the same names.
EXPLANATIONS = {
    "explanations": (
        *("study", "explanation", "result", "bits", "null_p", "configurations_tried", "cells"),
        *("matches_before", "matches_after", "held_out", "held_out_matches"),
        *("claims_before", "claims_after", "cpu_minutes"),
    ),
    "explanation_causes": (
        *("study", "explanation", "cause", "value", "bits", "plausibility", "evidence"),
    ),
    "explained_cells": EXPLAINED_COLUMNS,
}
#: Chance of as good a score by nothing from which on nothing is called found.
SIGNIFICANCE = 0.05
#: Share that held-out cells must reach of the matches among the seen.
HELD_OUT_AT_LEAST = 0.5
#: Configurations that are named as nearest to the best.
_NEAREST = 10
#: The name of the explanation with the shortest description, and of the other.
_BEST, _ALTERNATIVE = "best", "alternative"


def explain_study(root: Path, name: str, folder: Path, machine: Machine) -> None:
    """Search a study's best explanation; write explanation.json and its tables to `folder`."""
    causes = load_explanations(root, name)
    if causes is None:
        raise InputError(f"{explanations_path(root, name)}: no such file; study {name} needs one")
    search = Search.begin(root, causes, machine)
    trials, found = search.run(), list[tuple[dict[str, Any], Finding]]()
    for called, one in zip((_BEST, _ALTERNATIVE), trials, strict=False):
        finding = judge_finding(root, search, one)
        # Where nothing is found there is no second explanation.
        if not found or result_of(finding)[0] != NONE_FOUND:
            found.append((_account(search, called, one, finding), finding))
    common = _common(search)
    document = common | found[0][0] | {"others": [own for own, _ in found[1:]]}
    document["made_from"] = made_from(root, name, machine.exact_engine)
    write_text(folder / NAME, canonical_json(document) + "\n")
    rows = (
        [_row(common | own, finding) for own, finding in found],
        [row for own, finding in found for row in _cause_rows(causes, own, finding)],
        found[0][1].cells,
    )
    for (table, columns), own in zip(EXPLANATIONS.items(), rows, strict=True):
        write_table(folder / f"{table}.csv", own, columns)
    runs = search.runner.runs(trials[0].configuration, search.whole) or []
    scenarios = {r.scenario_id: r.scenario.model_dump(mode="json") for r in runs if not r.refusal}
    write_text(folder / SCENARIOS, canonical_json(scenarios) + "\n")


def result_of(found: Finding) -> tuple[str, list[str]]:
    """Return what the best is called, and why it is no more than that."""
    if found.gain_bits <= 0:
        return NONE_FOUND, [
            "No change that was tried shortens the description by more than it takes to name."
        ]
    if found.p > SIGNIFICANCE:
        return NONE_FOUND, [
            f"A search over the same runs does as well on shuffled deviations (p = {found.p:.2g})."
        ]
    reasons, seen, held_out = [], found.seen, found.held_out
    held = held_out.after / held_out.cells if held_out.cells else 0.0
    wanted = HELD_OUT_AT_LEAST * (seen.after / seen.cells if seen.cells else 0.0)
    if held < wanted or held_out.after < held_out.before:
        reasons.append(
            f"It does not hold on what the search did not see: {held_out.after} of "
            f"{held_out.cells} match (defaults {held_out.before})."
        )
    idle = [one.cause for one in found.leaving if one.bits < PAYS_BITS]
    if idle:
        reasons.append(f"Not every cause pays for itself: {', '.join(idle)}.")
    return (BEST_GUESS if reasons else EXPLANATION), reasons


def _common(search: Search) -> dict[str, Any]:
    """Return what a search says of all that it tried."""
    runner, causes = search.runner, search.runner.explanations
    tried = search.at_stage(search.stages[0])
    used = {cause for trial in search.tried.values() for cause, _ in trial.configuration}
    if causes.score == "cells":
        # Every configuration is scored under all readings.
        used |= {cause.id for cause in causes.of_kind("reading")}
    testable = [one.id for one in causes.causes if one.kind != "untestable"]
    return {
        "study": causes.study,
        "engine": runner.machine.engine,
        "score": causes.score,
        "permutations": search.settings.explanation.permutations,
        "configurations_tried": search.count,
        "causes_tried": [one for one in testable if one in used],
        "causes_untried": [one for one in testable if one not in used],
        "untestable": {one.id: one.untestable for one in causes.of_kind("untestable")},
        "cpu_minutes": round(runner.costs.spent_s / 60, 2),
        "budget_minutes": round(causes.cpu_budget_s / 60, 2),
        "nearest": [_scored(trial, tried[0]) for trial in tried[:_NEAREST]],
    }


def _account(search: Search, name: str, best: Trial, found: Finding) -> dict[str, Any]:
    """Return what a search says of one explanation."""
    result, reasons = result_of(found)
    not_compared = search.not_compared(best)
    is_coupled = search.is_coupled(best.configuration)
    bits = {(one.cause, one.level): one.bits for one in found.leaving}
    document = {
        "explanation": name,
        "coupled": search.coupled.title if search.coupled and is_coupled else "",
        "result": result,
        "reasons": reasons,
        "causes": [
            _cause(search.runner.explanations, *pair) | {"bits": bits[pair]}
            for pair in dict.fromkeys(best.pairs)
        ],
        "bits": round(best.bits, 3),
        "gain_bits": round(found.gain_bits, 3),
        "null_p": found.p,
        "seen": asdict(found.seen),
        "held_out": asdict(found.held_out),
        "leaving": [asdict(one) for one in found.leaving],
        "impossible": found.impossible,
        "claims_before": found.claims_before,
        "claims_after": found.claims_after,
        "equally_good": [_scored(t, best) for t in sorted(found.rivals, key=lambda t: t.rank)],
        "not_compared": not_compared,
        "identified": not found.rivals and not not_compared,
    }
    return document | ({"distances": found.distances} if found.distances else {})


def _row(document: Mapping[str, Any], found: Finding) -> dict[str, object]:
    seen, held_out = found.seen, found.held_out
    of_cells = document["score"] == "cells"
    return {
        **{key: document[key] for key in EXPLANATIONS["explanations"] if key in document},
        "cells": len(found.cells),
        "matches_before": seen.before + held_out.before if of_cells else None,
        "matches_after": seen.after + held_out.after if of_cells else None,
        "held_out": held_out.cells,
        "held_out_matches": held_out.after,
        "claims_before": holding(found.claims_before),
        "claims_after": holding(found.claims_after),
    }


def _cause_rows(
    causes: Explanations, document: Mapping[str, Any], found: Finding
) -> list[dict[str, object]]:
    rows = []
    for one in found.leaving:
        cause = _cause(causes, one.cause, one.level)
        evidence = cause["evidence"] or f"{cause['reason']} Source: {cause['source']}."
        rows.append(
            {
                "study": causes.study,
                "explanation": document["explanation"],
                "cause": one.cause,
                "value": one.level,
                "bits": one.bits,
                "plausibility": cause["plausibility"],
                "evidence": evidence,
            }
        )
    return rows


def _cause(causes: Explanations, name: str, level: str) -> dict[str, Any]:
    """Return what is known of a cause, which for an exception is `cause@table`, at a level."""
    cause = causes.by_id[name.partition("@")[0]]
    title = next((v.title for v in cause.levels or [] if v.key == level), None)
    texts = {"reason", "source", "plausibility", "evidence", "outside_ledger"}
    return {
        "cause": name,
        "level": level,
        "title": title or cause.title,
        "cause_title": cause.title,
        "kind": cause.kind,
        **{key: text or "" for key, text in cause.model_dump(include=texts).items()},
    }


def _scored(trial: Trial, best: Trial) -> dict[str, Any]:
    return {
        "causes": [list(pair) for pair in trial.pairs],
        "bits": round(trial.total, 3),
        "worse_by_bits": round(trial.total - best.total, 3),
    }


def made_from(root: Path, name: str, engine: Engine) -> dict[str, str]:
    """Return the hashes of all that decides a study's explanation, as it is now."""
    settings, causes = load_sensitivity(root), load_explanations(root, name)
    return input_hashes(
        root,
        name,
        engine,
        settings=[settings.seed, settings.explanation.model_dump(mode="json")],
        causes=causes and causes.model_dump(mode="json"),
    )


def is_current(root: Path, data: Path, document: Mapping[str, Any]) -> bool:
    """Return whether an explanation in the folder of results is what would be made now."""
    name = document["study"]
    return is_same(data, document.get("made_from", {}), lambda e: made_from(root, name, e))
