"""Explains a study: searches its best explanation, judges it on held-out data, and writes it.

Where the study declares coupled causes, the best with them and the best without are both judged
and written, the shorter description first. The result is an *explanation* if it meets all four
conditions (`failed_conditions`), a *best guess* if it fails one of them, else *none found*.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replication.design.config import explanations_path, load_sensitivity
from replication.design.input_hashes import input_hashes
from replication.engines.model import Engine
from replication.explore.finding import HELD_OUT, REPEATED, SEEN, judge_finding
from replication.explore.machine import Machine, write_json, write_scenarios
from replication.explore.score import PAYS_BITS
from replication.explore.search import Search
from replication.study.errors import InputError
from replication.study.table import write_table
from replication.study.verdict import Verdict
from replication.verdicts.cause import AGAINST_DATA, load_explanations

#: Files of the result and of its scenarios, which `replicate run` starts.
NAME, SCENARIOS = "explanation.json", "explained_scenarios.json"
#: Results of a search.
EXPLANATION, BEST_GUESS, NONE_FOUND = "explanation", "best guess", "none found"
#: The tables of a study's folder, which are merged under the same names.
EXPLANATIONS = {
    "explanations": (
        *("study", "explanation", "result", "bits", "null_p", "configurations_tried", "cells"),
        *("matches_before", "matches_after", "held_out", "held_out_matches_before"),
        *("held_out_matches", "held_out_error_before", "held_out_error_after"),
        *("claims_before", "claims_after", "contradicts", "suggested_by", "cpu_minutes"),
    ),
    "explanation_causes": (
        *("study", "explanation", "cause", "value", "bits", "plausibility", "evidence"),
    ),
    "explained_cells": (
        *("study", "table", "row", "column", "engine", "unit", "published", "reproduced_mean"),
        *("matches", "used_in_search", "reason"),
    ),
}
#: Largest p value of an explanation in the permutation test.
SIGNIFICANCE = 0.05


def explain_study(root: Path, name: str, folder: Path, machine: Machine) -> None:
    """Search a study's best explanation; write explanation.json and its tables to `folder`."""
    causes = load_explanations(root, name)
    if causes is None:
        raise InputError(f"{explanations_path(root, name)}: no such file; study {name} needs one")
    search = Search.begin(root, causes, machine)
    trials = search.run()
    cells, explanations = list[dict[str, Any]](), list[dict[str, Any]]()
    for called, best in zip(("best", "alternative"), trials, strict=False):
        judged, rows = judge_finding(search, best)
        result, reasons = result_of(judged | {"score": causes.score})
        # A second explanation is listed only if it was found; the cells are the first one's.
        if not explanations or result != NONE_FOUND:
            own = {"explanation": called, "result": result, "reasons": reasons}
            explanations.append(judged | own | {"gain_bits": round(judged["gain_bits"], 3)})
            cells = cells or rows
    common, hashes = _common(search), sources(root, name, machine.engine)
    document = common | explanations[0] | {"others": explanations[1:], "input_hashes": hashes}
    write_json(folder / NAME, document)
    tables: dict[str, list[dict[str, Any]]] = {
        "explanations": [_row(common | one) for one in explanations],
        "explanation_causes": [
            {
                **{"study": name, "explanation": one["explanation"], "value": cause["level"]},
                **{key: cause[key] for key in ("cause", "bits", "plausibility")},
                "evidence": cause["evidence"] or f"{cause['reason']} Source: {cause['source']}.",
            }
            for one in explanations
            for cause in one["causes"]
        ],
        "explained_cells": cells,
    }
    for table, rows in tables.items():
        write_table(folder / f"{table}.csv", rows, EXPLANATIONS[table])
    runs = search.runner.runs(trials[0].configuration, search.whole) or []
    write_scenarios(folder / SCENARIOS, runs)


def result_of(judged: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the result of a search, and why it is no explanation."""
    if judged["gain_bits"] <= 0 or not judged["causes"]:
        return NONE_FOUND, [
            "No change that was tried shortens the description by more than it takes to name."
        ]
    reasons = failed_conditions(judged)
    return (EXPLANATION, BEST_GUESS, NONE_FOUND)[min(len(reasons), 2)], reasons


def failed_conditions(judged: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each condition of an explanation that a search's best fails.

    Every cause is worth two bits; shuffled data are rarely fitted as well; held-out matches do not
    fall and the held-out error falls; no cause contradicts the paper's text or its authors' data.
    """
    reasons = []
    if unpaid := [one["title"] for one in judged["causes"] if one["bits"] < PAYS_BITS]:
        reasons.append(f"Some causes do not pay for themselves: {'; '.join(unpaid)}.")
    if judged["null_p"] > SIGNIFICANCE:
        p = f"p = {judged['null_p']:.2g}"
        reasons.append(f"A search over the same runs fits shuffled deviations as well ({p}).")
    if not _is_confirmed(judged["held_out"]):
        reasons.append(f"Held-out data do not confirm it: {_held_out_in_words(judged)}.")
    contradicting = [one for one in judged["causes"] if one["cause"] in judged["contradicts"]]
    against_data = [one["title"] for one in contradicting if one["plausibility"] == AGAINST_DATA]
    against_text = [one["title"] for one in contradicting if one["plausibility"] != AGAINST_DATA]
    if against_text:
        reasons.append(f"The paper's text contradicts it: {'; '.join(against_text)}.")
    if against_data:
        reasons.append(f"The authors' own data contradict it: {'; '.join(against_data)}.")
    return reasons


def _is_confirmed(held_out: Mapping[str, Any]) -> bool:
    before, after = held_out["error_before"], held_out["error_after"]
    if before is None or after is None:
        return False
    return bool(held_out["after"] >= held_out["before"] and after < before)


def _held_out_in_words(judged: Mapping[str, Any]) -> str:
    held_out = judged["held_out"]
    if not held_out["cells"]:
        return "nothing is held out"
    what = "matches" if judged["score"] == "cells" else "claims that hold"
    error = "median error" if judged["score"] == "cells" else "share of claims that fail"
    words = f"{what} go from {held_out['before']} to {held_out['after']} of {held_out['cells']}"
    if held_out["error_before"] is None or held_out["error_after"] is None:
        return words
    before, after = (f"{100 * held_out[f'error_{when}']:.3g} %" for when in ("before", "after"))
    return f"{words}, and the {error} goes from {before} to {after}"


def _common(search: Search) -> dict[str, Any]:
    runner, causes = search.runner, search.runner.explanations
    used = {cause for trial in search.tried.values() for cause, _ in trial.configuration}
    if causes.score == "cells":
        # Every configuration is scored under all interpretations.
        used |= {cause.id for cause in causes.of_kind("reading")}
    testable = [one.id for one in causes.causes if one.kind != "untestable"]
    return {
        "study": causes.study,
        "engine": runner.machine.engine.name,
        "score": causes.score,
        "permutations": search.settings.explanation.permutations,
        "configurations_tried": search.count,
        "causes_tried": [one for one in testable if one in used],
        "causes_untried": [one for one in testable if one not in used],
        "untestable": {one.id: one.untestable for one in causes.of_kind("untestable")},
        "cpu_minutes": round(runner.costs.spent_s / 60, 2),
        "budget_minutes": round(causes.cpu_budget_s / 60, 2),
    }


def _row(document: Mapping[str, Any]) -> dict[str, object]:
    seen, held_out, repeated = (document[part] for part in (SEEN, HELD_OUT, REPEATED))
    all_cells = (seen, held_out, repeated) if document["score"] == "cells" else ()
    claims = {name: [*document[name].values()] for name in ("claims_before", "claims_after")}
    return {
        **{key: document[key] for key in EXPLANATIONS["explanations"] if key in document},
        "cells": sum(part["cells"] for part in all_cells),
        "matches_before": sum(part["before"] for part in all_cells) if all_cells else None,
        "matches_after": sum(part["after"] for part in all_cells) if all_cells else None,
        "held_out": held_out["cells"],
        "held_out_matches_before": held_out["before"],
        "held_out_matches": held_out["after"],
        "held_out_error_before": held_out["error_before"],
        "held_out_error_after": held_out["error_after"],
        "contradicts": "; ".join(document["contradicts"]),
        "suggested_by": "; ".join(document["suggested_by"]),
        **{name: found.count(Verdict.REPRODUCED) for name, found in claims.items()},
    }


def sources(root: Path, name: str, engine: Engine) -> dict[str, str]:
    """Return the current hashes of all that decides a study's explanation."""
    settings, causes = load_sensitivity(root), load_explanations(root, name)
    own = [settings.seed, settings.explanation.decisive()]
    return input_hashes(root, name, engine, settings=own, causes=causes and causes.decisive())
