"""Explains a study: searches its best explanation, judges it on what was held out, writes it down.

The best is an *explanation* if it beats the permutation test, holds on what the search did not see,
and every cause pays for itself; a *best guess* if it gains and beats the test but fails one of the
others; else *none found*.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from replication.design.config import load_study
from replication.design.input_hashes import input_hashes, is_same
from replication.engines.model import Engine
from replication.explore import finding
from replication.explore.finding import Distance, Leaving, Share
from replication.explore.machine import Machine
from replication.explore.permutation_test import cells_p, claims_p, never_together
from replication.explore.score import Reader
from replication.explore.search import CellJudge, ClaimJudge, Found, Search, Trial, Trials
from replication.explore.trial_runner import (
    DEFAULTS,
    Configuration,
    StudyPart,
    TrialRunner,
    in_words,
    stages,
    whole,
)
from replication.metrics.cell_map import map_cells
from replication.metrics.trace_folder import trace_files
from replication.study.errors import InputError
from replication.study.files import write_text
from replication.study.published import published_path, read_published
from replication.study.scenario import canonical_json
from replication.study.sensitivity_settings import (
    ExplanationSearch,
    explanations_path,
    load_sensitivity,
)
from replication.study.storage.parquet import write_parquet
from replication.study.storage.table import write_table
from replication.study.verdict import Verdict
from replication.verdicts.cause import Explanations, check_explanations, load_explanations

#: What is found, and the scenarios of its configuration: `replicate run` starts any of them.
NAME, SCENARIOS = "explanation.json", "explained_scenarios.json"
#: What the best that was found is called.
EXPLANATION, BEST_GUESS, NONE_FOUND = "explanation", "best guess", "none found"
EXPLANATION_COLUMNS = (
    *("study", "explanation", "word", "atoms", "bits", "null_p", "setups_tried", "cells"),
    *("inside_before", "inside_after", "unseen", "unseen_inside", "claims_before", "claims_after"),
    "cpu_minutes",
)
EXPLAINED_COLUMNS = (
    *("study", "table", "row", "column", "engine", "unit", "published", "reproduced_mean"),
    *("inside", "seen", "reason"),
)
#: The tables of a study's folder, which are merged under the same names.
EXPLANATIONS = {"explanations": EXPLANATION_COLUMNS, "explained_cells": EXPLAINED_COLUMNS}
#: Of the budget, what is kept for the last stages at most.
_MOST_RESERVED = 0.4
#: By chance one number in ten lies outside of the range of 19 replicates.
REPLICATES_OF_RANKS = 19
#: Chance of as good a score by nothing from which on nothing is called found.
SIGNIFICANCE = 0.05
#: Share that held-out cells must reach of the matches among the seen.
HELD_OUT_AT_LEAST = 0.5
#: Configurations that are no worse than the best by these bits are listed.
EQUALLY_GOOD_BITS = 7.0
#: Configurations that are named as nearest to the best.
_NEAREST = 10


@dataclass(frozen=True)
class Explaining:
    """A study's explanation in the making: its trials, and the parts that are scored and judged."""

    root: Path
    trials: Trials
    stages: list[StudyPart]
    whole: StudyPart
    settings: ExplanationSearch
    seed: int

    @classmethod
    def begin(cls, root: Path, found: Explanations, machine: Machine) -> Explaining:
        """Return what explains a study; InputError where files do not fit together."""
        study, settings = load_study(root, found.study), load_sensitivity(root)
        numbers = read_published(published_path(root, study.id))
        # A configuration is run once: it has no spread.
        cells = [cell for cell in map_cells(study, numbers) if not cell.is_spread]
        check_explanations(found, study, cells)
        runner = TrialRunner(study, found, cells, machine)
        judge: CellJudge | ClaimJudge = ClaimJudge(runner, settings.explanation)
        if found.score == "cells":
            judge = CellJudge(runner, Reader(study, found, cells), settings.explanation)
        parts = stages(found, study, cells), whole(found, study, cells)
        return cls(root, Trials(runner, judge), *parts, settings.explanation, settings.seed)

    @property
    def runner(self) -> TrialRunner:
        """What runs configurations."""
        return self.trials.runner

    @property
    def reserve_s(self) -> float:
        """What the finalists, the waterfall and the held-out part should cost."""
        runner, last = self.runner, self.stages[-1]
        one_s = runner.cost_s(DEFAULTS, last)
        if last.levels == self.stages[0].levels == self.whole.levels:
            # All are run by then, but perhaps for the best without one of its causes.
            return one_s
        whole_s = runner.cost_s(DEFAULTS, self.whole)
        wanted_s = (self.settings.finalists + 2) * one_s + 2 * whole_s
        return min(wanted_s, _MOST_RESERVED * runner.budget_s)


@dataclass(frozen=True)
class Finding:
    """A study's best explanation: what it is called, why it is no more, and how it does.

    `gain_bits` is by how much it is shorter than the defaults and `p` the chance of that; `seen`
    and `held_out` are on what the search saw and did not; `impossible` counts printed numbers that
    cannot be, as the study reads them and under it.
    """

    word: str
    reasons: tuple[str, ...]
    best: Trial
    gain_bits: float
    p: float
    seen: Share
    held_out: Share
    leaving: Sequence[Leaving]
    claims_before: Mapping[str, str]
    claims_after: Mapping[str, str]
    cells: list[dict[str, object]] = field(default_factory=list)
    impossible: tuple[int, int] = (0, 0)
    distances: Sequence[Distance] = ()


def explain_study(root: Path, name: str, folder: Path, machine: Machine) -> Finding:
    """Search a study's best explanation; write explanation.json and its tables to `folder`."""
    found = load_explanations(root, name)
    if found is None:
        raise InputError(f"{explanations_path(root, name)}: no such file; study {name} needs one")
    own = Explaining.begin(root, found, machine)
    searched = Search(own.trials, own.stages, own.settings, own.seed, own.reserve_s).run()
    judge = own.trials.judge
    if isinstance(judge, CellJudge):
        result = _by_cells(own, judge, searched)
    else:
        result = _by_claims(own, judge, searched)
    _write(folder, own, result)
    return result


def _by_cells(own: Explaining, judge: CellJudge, found: Found) -> Finding:
    runner, last, best = own.runner, own.stages[-1], found.best
    before, after = (
        own.trials.evaluate([one], own.whole)[0] for one in (DEFAULTS, best.configuration)
    )
    stated = finding.of_defaults(found.defaults)
    count = REPLICATES_OF_RANKS
    rows_before, rows = (
        finding.cell_rows(judge, trial, ran, own.whole, count)
        for trial, ran in ((stated, before), (best, after))
    )
    gain_bits = judge.stated_bits(found.defaults, last) - best.total
    (on_first,) = own.trials.evaluate([best.configuration], own.stages[0])
    p = cells_p(own.trials, judge, own.stages[0], on_first, own.seed)
    read = finding.table_readings(judge, best)
    claims = [
        finding.judged_claims(runner.study, runner.results([one], own.whole), readings)
        for one, readings in ((DEFAULTS, {}), (best.configuration, read))
    ]
    return _finding(
        own,
        best,
        gain_bits,
        p,
        seen=finding.share(rows_before, rows, seen=True),
        held_out=finding.share(rows_before, rows, seen=False),
        leaving=finding.leaving_out(judge, found, last),
        claims_before=claims[0],
        claims_after=claims[1],
        cells=rows,
        impossible=(finding.impossible(judge, stated), finding.impossible(judge, best)),
        distances=_trace_distances(own, best.configuration),
    )


def _trace_distances(own: Explaining, configuration: Configuration) -> list[Distance]:
    """Return how far replicates are from the study's raw traces, where those are there."""
    study, count = own.runner.study, REPLICATES_OF_RANKS
    files = trace_files(own.root, study.id)
    if not files:
        return []
    before, after = (
        own.runner.replicated(one, own.whole, count) for one in (DEFAULTS, configuration)
    )
    return finding.distances(study, published_path(own.root, study.id), files, before, after)


def _by_claims(own: Explaining, judge: ClaimJudge, found: Found) -> Finding:
    hidden, best = set(own.runner.explanations.held_out.claims), found.best
    before, after = (
        judge.verdicts(own.runner.results([trial.configuration], own.whole), own.whole)
        for trial in (found.defaults, best)
    )

    def held(claims: set[str]) -> Share:
        first, last = (
            holding({c: v for c, v in one.items() if c in claims}) for one in (before, after)
        )
        return Share(len(claims), first, last, math.nan, math.nan)

    (on_first,) = own.trials.evaluate([best.configuration], own.stages[0])
    return _finding(
        own,
        best,
        gain_bits=found.defaults.total - best.total,
        p=claims_p(own.trials, judge, own.stages[0], on_first, own.seed),
        seen=held(set(before) - hidden),
        held_out=held(set(before) & hidden),
        leaving=[
            Leaving(cause, level, trial.total - best.total, holding(trial.verdicts))
            for (cause, level), trial in zip(best.configuration, found.waterfall, strict=True)
        ],
        claims_before=before,
        claims_after=after,
    )


def _finding(own: Explaining, best: Trial, gain_bits: float, p: float, **rest: Any) -> Finding:
    shares = rest["seen"], rest["held_out"]
    word, reasons = word_of(gain_bits, p, *shares, rest["leaving"])
    return Finding(word, reasons, best, gain_bits, p, **rest)


def word_of(
    gain_bits: float,
    p: float,
    seen: Share,
    held_out: Share,
    leaving: Sequence[Leaving],
) -> tuple[str, tuple[str, ...]]:
    """Return what the best is called, and why it is no more than that."""
    if gain_bits <= 0:
        return NONE_FOUND, ("No change shortens the description by more than it takes to name.",)
    if p > SIGNIFICANCE:
        return NONE_FOUND, (
            f"A search over the same runs does as well on shuffled deviations (p = {p:.2g}).",
        )
    reasons = []
    held = held_out.after / held_out.cells if held_out.cells else 0.0
    wanted = HELD_OUT_AT_LEAST * (seen.after / seen.cells if seen.cells else 0.0)
    if held < wanted or held_out.after < held_out.before:
        reasons.append(
            f"It does not hold on what the search did not see: {held_out.after} of "
            f"{held_out.cells} inside (defaults {held_out.before})."
        )
    idle = [one.atom for one in leaving if one.bits <= 0]
    if idle:
        reasons.append(f"Not every atom pays for itself: {', '.join(idle)}.")
    return (BEST_GUESS, tuple(reasons)) if reasons else (EXPLANATION, ())


def holding(verdicts: Mapping[str, str]) -> int:
    """Return how many claims hold."""
    return sum(verdict == Verdict.REPRODUCED for verdict in verdicts.values())


# --- on disk ---


def _write(folder: Path, own: Explaining, result: Finding) -> None:
    """Write explanation.json, its tables and tried.parquet to a folder."""
    study, engine = own.runner.study.id, own.runner.machine.exact_engine
    write_table(folder / "explanations.csv", [_row(own, result)], EXPLANATION_COLUMNS)
    write_table(folder / "explained_cells.csv", result.cells, EXPLAINED_COLUMNS)
    write_parquet(_tried(own.trials), folder / "tried.parquet")
    runs = own.runner.runs(result.best.configuration, own.whole) or []
    scenarios = {r.scenario_id: r.scenario.model_dump(mode="json") for r in runs if not r.refusal}
    write_text(folder / SCENARIOS, canonical_json(scenarios) + "\n")
    document = _document(own, result)
    document["made_from"] = made_from(own.root, study, engine)
    if result.distances:
        document["distances"] = [asdict(one) for one in result.distances]
    write_text(folder / NAME, canonical_json(document) + "\n")


def _row(own: Explaining, result: Finding) -> dict[str, object]:
    found, best = own.runner.explanations, result.best
    of_cells = found.score == "cells"
    return {
        "study": found.study,
        "explanation": "best",
        "word": result.word,
        "atoms": "; ".join(f"{cause}={level}" for cause, level in best.pairs),
        "bits": round(best.bits, 3),
        "null_p": result.p,
        "setups_tried": own.trials.count,
        "cells": len(result.cells),
        "inside_before": result.seen.before + result.held_out.before if of_cells else None,
        "inside_after": result.seen.after + result.held_out.after if of_cells else None,
        "unseen": result.held_out.cells,
        "unseen_inside": result.held_out.after,
        "claims_before": holding(result.claims_before),
        "claims_after": holding(result.claims_after),
        "cpu_minutes": round(own.runner.spent_s / 60, 2),
    }


def _tried(trials: Trials) -> pa.Table:
    rows = [
        {
            "set_up": in_words(trial.configuration),
            "rung": trial.stage,
            "data_bits": trial.data_bits,
            "bits": trial.bits,
            "atoms": in_words(trial.pairs),
            "verdicts": json.dumps(trial.verdicts, sort_keys=True),
        }
        for trial in trials.tried.values()
    ]
    return pa.Table.from_pandas(pd.DataFrame(rows), preserve_index=False)


def _document(own: Explaining, result: Finding) -> dict[str, Any]:
    found, runner = own.runner.explanations, own.runner
    tried, on_last = own.trials.at_stage(own.stages[0]), own.trials.at_stage(own.stages[-1])
    equal = [t for t in on_last if t.total <= on_last[0].total + EQUALLY_GOOD_BITS]
    kinds = {tuple(sorted({cause.split("@")[0] for cause, _ in t.pairs})) for t in equal}
    pairs = never_together(tried)
    return {
        "study": found.study,
        "engine": runner.machine.engine,
        "score": found.score,
        "word": result.word,
        "reasons": list(result.reasons),
        "atoms": [_cause(found, cause, level) for cause, level in result.best.pairs],
        "bits": round(result.best.bits, 3),
        "gain_bits": round(result.gain_bits, 3),
        "null_p": result.p,
        "permutations": own.settings.permutations,
        "seen": _plain(result.seen),
        "unseen": _plain(result.held_out),
        "leaving": [_plain(one) for one in result.leaving],
        "impossible": dict(zip(("before", "after"), result.impossible, strict=True)),
        "claims_before": dict(result.claims_before),
        "claims_after": dict(result.claims_after),
        "set_ups_tried": own.trials.count,
        "atoms_tested": [one.id for one in found.causes if one.kind != "untestable"],
        "untestable": {one.id: one.untestable for one in found.of_kind("untestable")},
        "cpu_minutes": round(runner.spent_s / 60, 2),
        "budget_minutes": round(found.cpu_budget_s / 60, 2),
        "equally_good": [_scored(t, on_last[0]) for t in equal],
        "identified": len(kinds) == 1,
        "nearest": [_scored(t, tried[0]) for t in tried[:_NEAREST]],
        "never_together": pairs if found.score == "claims" else [],
    }


def _cause(found: Explanations, name: str, level: str) -> dict[str, Any]:
    cause = found.by_id[name.split("@")[0]]
    own = next((v for v in cause.levels or [] if v.key == level), None)
    return {
        "atom": name,
        "level": level,
        "title": (own and own.title) or cause.title,
        "atom_title": cause.title,
        "reason": cause.reason,
        "source": cause.source,
        "kind": cause.kind,
        "outside_ledger": cause.outside_ledger or "",
    }


def _scored(trial: Trial, best: Trial) -> dict[str, Any]:
    return {
        "atoms": [list(pair) for pair in trial.pairs],
        "bits": round(trial.total, 3),
        "worse_by_bits": round(trial.total - best.total, 3),
    }


def _plain(value: Share | Leaving) -> dict[str, Any]:
    """Return a record with numbers that JSON has."""
    found = asdict(value)
    return {
        key: None if isinstance(item, float) and math.isnan(item) else item
        for key, item in found.items()
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
    """Return whether an account in the folder of results is what would be made now."""
    name = document["study"]
    return is_same(data, document.get("made_from", {}), lambda e: made_from(root, name, e))
