"""Explains a study: searches its best explanation, judges it on what was held out, writes it down.

Where the study declares coupled causes, the best with them and the best without are both judged
and written, the shorter description first. Each is an *explanation* if it beats the permutation
test, holds on what the search did not see, and every cause pays for itself; a *best guess* if it
gains and beats the test but fails one of the others; else *none found*.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replication.design.config import explanations_path, load_sensitivity
from replication.design.input_hashes import input_hashes, is_same
from replication.engines.model import Engine
from replication.explore.finding import holding, judge_finding, scored
from replication.explore.machine import Machine, write_json, write_scenarios
from replication.explore.score import PAYS_BITS
from replication.explore.search import Search
from replication.explore.trial import Trial
from replication.study.errors import InputError
from replication.study.storage.table import write_table
from replication.verdicts.cause import Cause, load_explanations

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
    trials, found = search.run(), list[tuple[dict[str, Any], list[dict[str, Any]]]]()
    for called, best in zip((_BEST, _ALTERNATIVE), trials, strict=False):
        account, cells = judge_finding(search, best)
        # Where nothing is found there is no second explanation.
        if not found or result_of(account)[0] != NONE_FOUND:
            found.append((_account(search, called, best, account), cells))
    common, accounts = _common(search), [account for account, _ in found]
    hashes = sources(root, name, machine.exact_engine)
    document = common | accounts[0] | {"others": accounts[1:], "input_hashes": hashes}
    write_json(folder / NAME, document)
    tables: dict[str, list[dict[str, Any]]] = {
        "explanations": [_row(common | own) for own in accounts],
        "explanation_causes": [
            _cause_row(name, own["explanation"], cause)
            for own in accounts
            for cause in own["causes"]
        ],
        "explained_cells": found[0][1],
    }
    for table, rows in tables.items():
        write_table(folder / f"{table}.csv", rows, EXPLANATIONS[table])
    runs = search.runner.runs(trials[0].configuration, search.whole) or []
    write_scenarios(folder / SCENARIOS, runs)


def result_of(found: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return what the best is called, and why it is no more than that."""
    if found["gain_bits"] <= 0:
        return NONE_FOUND, [
            "No change that was tried shortens the description by more than it takes to name."
        ]
    if found["null_p"] > SIGNIFICANCE:
        p = f"{found['null_p']:.2g}"
        return NONE_FOUND, [
            f"A search over the same runs does as well on shuffled deviations (p = {p})."
        ]
    reasons, seen, held_out = [], found["seen"], found["held_out"]
    share, wanted = (
        one["after"] / one["cells"] if one["cells"] else 0.0 for one in (held_out, seen)
    )
    if share < HELD_OUT_AT_LEAST * wanted or held_out["after"] < held_out["before"]:
        reasons.append(
            f"It does not hold on what the search did not see: {held_out['after']} of "
            f"{held_out['cells']} match (defaults {held_out['before']})."
        )
    idle = [one["cause"] for one in found["leaving"] if one["bits"] < PAYS_BITS]
    if idle:
        reasons.append(f"Not every cause pays for itself: {', '.join(idle)}.")
    return (BEST_GUESS if reasons else EXPLANATION), reasons


def _common(search: Search) -> dict[str, Any]:
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
        "nearest": [scored(trial, tried[0]) for trial in tried[:_NEAREST]],
    }


def _account(search: Search, name: str, best: Trial, found: Mapping[str, Any]) -> dict[str, Any]:
    result, reasons = result_of(found)
    causes, coupled = search.runner.explanations.by_id, search.coupled
    return {
        **found,
        "explanation": name,
        "coupled": coupled.title if coupled and search.is_coupled(best.configuration) else "",
        "result": result,
        "reasons": reasons,
        "causes": [
            _described(causes[one["cause"].partition("@")[0]], one) for one in found["leaving"]
        ],
        "bits": round(best.bits, 3),
        "gain_bits": round(found["gain_bits"], 3),
    }


def _described(cause: Cause, leaving: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of a cause at a level, and what leaving it out costs."""
    level = leaving["level"]
    title = next((one.title for one in cause.levels or [] if one.key == level), None)
    texts = {"reason", "source", "plausibility", "evidence", "outside_ledger"}
    return {
        **{name: leaving[name] for name in ("cause", "level", "bits")},
        "title": title or cause.title,
        **{key: text or "" for key, text in cause.model_dump(include=texts).items()},
    }


def _row(document: Mapping[str, Any]) -> dict[str, object]:
    seen, held_out = document["seen"], document["held_out"]
    of_cells = document["score"] == "cells"
    return {
        **{key: document[key] for key in EXPLANATIONS["explanations"] if key in document},
        "cells": seen["cells"] + held_out["cells"] if of_cells else 0,
        "matches_before": seen["before"] + held_out["before"] if of_cells else None,
        "matches_after": seen["after"] + held_out["after"] if of_cells else None,
        "held_out": held_out["cells"],
        "held_out_matches": held_out["after"],
        **{name: holding(document[name]) for name in ("claims_before", "claims_after")},
    }


def _cause_row(study: str, explanation: str, cause: Mapping[str, Any]) -> dict[str, object]:
    return {
        "study": study,
        "explanation": explanation,
        "value": cause["level"],
        **{name: cause[name] for name in ("cause", "bits", "plausibility")},
        "evidence": cause["evidence"] or f"{cause['reason']} Source: {cause['source']}.",
    }


def sources(root: Path, name: str, engine: Engine) -> dict[str, str]:
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
    return is_same(data, document.get("input_hashes", {}), lambda e: sources(root, name, e))
