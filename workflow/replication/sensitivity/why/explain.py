"""Explains one study: searches, judges what is found on what was not seen, and writes it down."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from replication.judge.atom import Explanations, explanations_path, load_explanations
from replication.judge.atom_check import check_explanations
from replication.measure.cell_map import map_cells
from replication.plan.config import load_study
from replication.run.store import Store
from replication.sensitivity.why import finding
from replication.sensitivity.why.bench import Bench, Simulate
from replication.sensitivity.why.finding import Finding, Leaving, Share
from replication.sensitivity.why.null import null_p_cells, null_p_claims
from replication.sensitivity.why.part import Rung, rungs, whole
from replication.sensitivity.why.reader import Reader
from replication.sensitivity.why.search import Found, Search
from replication.sensitivity.why.set_up import DEFAULTS, Space, in_words
from replication.sensitivity.why.together import never_together
from replication.sensitivity.why.trial import CellJudge, ClaimJudge, Trial, Trials
from replication.study.errors import InputError
from replication.study.parquet import write_parquet
from replication.study.published import read_published
from replication.study.scenario import canonical_json
from replication.study.seal import write_sealed
from replication.study.sensitivity_settings import ExplanationSearch, load_sensitivity
from replication.study.table import write_table
from replication.study.verdict import Verdict

EXPLANATION_COLUMNS = (
    "study",
    "explanation",
    "word",
    "atoms",
    "bits",
    "null_p",
    "setups_tried",
    "cells",
    "inside_before",
    "inside_after",
    "unseen",
    "unseen_inside",
    "claims_before",
    "claims_after",
    "cpu_minutes",
)
EXPLAINED_COLUMNS = (
    "study",
    "table",
    "row",
    "column",
    "engine",
    "unit",
    "published",
    "reproduced_mean",
    "inside",
    "seen",
    "reason",
)
#: Set-ups that are told as nearest to the best.
_NEAREST = 10
#: Of the budget, what is kept for the last stages at most.
_MOST_RESERVED = 0.6


@dataclass
class _Stage:
    """What the stages of explaining a study share."""

    trials: Trials
    rungs: list[Rung]
    whole: Rung
    settings: ExplanationSearch
    seed: int
    engine: str

    @property
    def bench(self) -> Bench:
        return self.trials.bench


def explain_study(
    root: Path, name: str, folder: Path, engine: str, store: Store, simulate: Simulate
) -> Finding:
    """Search a study's best explanation; write explanation.json and its tables to `folder`.

    Parameters
    ----------
    root, name
        The project's folder and the study's id.
    folder
        Where the study's sensitivity is.
    engine, store, simulate
        The engine, its finished runs, and what runs more into them.

    Raises
    ------
    InputError, RunError
        Files are missing or do not fit together; a run fails.
    """
    found = load_explanations(root, name)
    if found is None:
        raise InputError(f"{explanations_path(root, name)}: no such file; study {name} needs one")
    stage = _stage(root, name, found, engine, store, simulate)
    last = stage.rungs[-1]
    reserve_s = _reserve_s(stage)
    space = stage.bench.space
    searched = Search(
        space, stage.trials, stage.rungs, stage.settings, stage.seed, reserve_s
    ).run()
    judge = stage.trials.judge
    if isinstance(judge, CellJudge):
        result = _by_cells(stage, judge, searched)
    else:
        assert isinstance(judge, ClaimJudge)
        result = _by_claims(stage, judge, searched)
    _write(folder, stage, found, result, last)
    return result


def _stage(
    root: Path, name: str, found: Explanations, engine: str, store: Store, simulate: Simulate
) -> _Stage:
    study, settings = load_study(root, name), load_sensitivity(root)
    cells = map_cells(study, read_published(root / "data" / "published" / f"{name}.csv"))
    check_explanations(found, study, cells)
    space = Space(study, found)
    bench = Bench(space, cells, engine, store, simulate, found.cpu_budget_s)
    judge: CellJudge | ClaimJudge = ClaimJudge(bench, settings.explanation)
    if found.score == "cells":
        judge = CellJudge(bench, Reader(study, found, cells), settings.explanation)
    return _Stage(
        Trials(bench, judge),
        rungs(found, study, cells),
        whole(found, study, cells),
        settings.explanation,
        settings.seed,
        engine,
    )


def _reserve_s(stage: _Stage) -> float:
    """Return what the finalists, the waterfall and the unseen part should cost."""
    bench, last = stage.bench, stage.rungs[-1]
    one_s, whole_s = bench.cost_s(DEFAULTS, last), bench.cost_s(DEFAULTS, stage.whole)
    wanted_s = (stage.settings.finalists + 4) * one_s + 2 * whole_s
    return min(wanted_s, _MOST_RESERVED * bench.budget_s)


def _by_cells(stage: _Stage, judge: CellJudge, found: Found) -> Finding:
    bench, last = stage.bench, stage.rungs[-1]
    before, after = stage.trials.of([DEFAULTS, found.best.set_up], stage.whole) * (
        2 if found.best.set_up == DEFAULTS else 1
    )
    stated = finding.of_defaults(found.defaults)
    rows_before, rows = (
        list(finding.cell_rows(judge, trial, ran, stage.whole, stage.engine))
        for trial, ran in ((stated, before), (found.best, after))
    )
    seen, unseen = (finding.share(rows_before, rows, kind) for kind in (True, False))
    gain_bits = judge.stated_bits(found.defaults, last) - found.best.total
    first = stage.rungs[0]
    on_first = stage.trials.of([found.best.set_up], first)[0]
    p = null_p_cells(stage.trials, judge, first, on_first, stage.seed)
    leaving = finding.leaving_out(judge, found, last)
    word, reasons = finding.word_of(gain_bits, p, seen, unseen, leaving, stage.settings)
    readings = finding.table_readings(judge, found.best)
    verdicts = [
        finding.judged_claims(bench.space.study, bench.results([set_up], stage.whole), read)
        for set_up, read in ((DEFAULTS, {}), (found.best.set_up, readings))
    ]
    return Finding(
        word,
        found.best.pairs,
        found.best.bits,
        gain_bits,
        p,
        seen,
        unseen,
        tuple(leaving),
        *verdicts,
        rows,
        reasons,
    )


def _by_claims(stage: _Stage, judge: ClaimJudge, found: Found) -> Finding:
    last = stage.rungs[-1]
    hidden = set(stage.bench.space.explanations.unseen.claims)
    verdicts = []
    for trial in (found.defaults, found.best):
        results = stage.bench.results([trial.set_up], stage.whole)
        verdicts.append(judge.verdicts(results, stage.whole))
    seen, unseen = (
        _claims_held(*verdicts, {c for c in verdicts[0] if (c in hidden) is not kind})
        for kind in (True, False)
    )
    gain_bits = found.defaults.total - found.best.total
    first = stage.rungs[0]
    on_first = stage.trials.of([found.best.set_up], first)[0]
    p = null_p_claims(stage.trials, judge, first, on_first, stage.seed)
    leaving = [
        Leaving(atom, level, trial.total - found.best.total, finding.holding(trial.verdicts))
        for (atom, level), trial in zip(found.best.set_up, found.waterfall, strict=True)
    ]
    word, reasons = finding.word_of(gain_bits, p, seen, unseen, leaving, stage.settings)
    assert last.claims
    return Finding(
        word,
        found.best.pairs,
        found.best.bits,
        gain_bits,
        p,
        seen,
        unseen,
        tuple(leaving),
        *verdicts,
        [],
        reasons,
    )


def _claims_held(
    before: Mapping[str, str], after: Mapping[str, str], own: set[str]
) -> Share:
    held = [
        sum(verdict == Verdict.REPRODUCED for claim, verdict in verdicts.items() if claim in own)
        for verdicts in (before, after)
    ]
    return Share(len(own), *held, float("nan"), float("nan"))


def _write(
    folder: Path, stage: _Stage, found: Explanations, result: Finding, last: Rung
) -> None:
    write_table(folder / "explanations.csv", [_row(stage, found, result)], EXPLANATION_COLUMNS)
    rows = result.cells
    write_table(folder / "explained_cells.csv", rows, EXPLAINED_COLUMNS)
    write_parquet(_tried(stage.trials), folder / "tried.parquet")
    document = _document(stage, found, result, last)
    write_sealed(folder / "explanation.json", canonical_json(document) + "\n")


def _row(stage: _Stage, found: Explanations, result: Finding) -> dict[str, object]:
    of_cells = found.score == "cells"
    return {
        "study": found.study,
        "explanation": "best",
        "word": result.word,
        "atoms": "; ".join(f"{atom}={level}" for atom, level in result.pairs),
        "bits": round(result.bits, 3),
        "null_p": result.null_p,
        "setups_tried": stage.trials.set_ups,
        "cells": len(result.cells),
        "inside_before": result.seen.before + result.unseen.before if of_cells else None,
        "inside_after": result.seen.after + result.unseen.after if of_cells else None,
        "unseen": result.unseen.cells,
        "unseen_inside": result.unseen.after,
        "claims_before": finding.holding(result.claims_before),
        "claims_after": finding.holding(result.claims_after),
        "cpu_minutes": round(stage.bench.spent_s / 60, 2),
    }


def _tried(trials: Trials) -> pa.Table:
    rows = [
        {
            "set_up": in_words(trial.set_up),
            "rung": trial.rung,
            "data_bits": trial.data_bits,
            "bits": trial.bits,
            "atoms": in_words(trial.pairs),
            "verdicts": json.dumps(trial.verdicts, sort_keys=True),
        }
        for trial in trials.tried.values()
    ]
    return pa.Table.from_pandas(pd.DataFrame(rows), preserve_index=False)


def _document(
    stage: _Stage, found: Explanations, result: Finding, last: Rung
) -> dict[str, Any]:
    on_last = stage.trials.on(last)
    close = stage.settings.equally_good_bits
    equal = [t for t in on_last if t.total <= on_last[0].total + close]
    kinds = {tuple(sorted({atom.split("@")[0] for atom, _ in t.pairs})) for t in equal}
    tried = stage.trials.on(stage.rungs[0])
    pairs = never_together(tried, stage.settings.never_together_expected)
    return {
        "study": found.study,
        "engine": stage.engine,
        "score": found.score,
        "word": result.word,
        "reasons": list(result.reasons),
        "atoms": [_atom(found, atom, level) for atom, level in result.pairs],
        "bits": round(result.bits, 3),
        "gain_bits": round(result.gain_bits, 3),
        "null_p": result.null_p,
        "permutations": stage.settings.permutations,
        "seen": _plain(result.seen),
        "unseen": _plain(result.unseen),
        "leaving": [_plain(one) for one in result.leaving],
        "claims_before": dict(result.claims_before),
        "claims_after": dict(result.claims_after),
        "set_ups_tried": stage.trials.set_ups,
        "atoms_tested": [a.id for a in found.atoms if a.kind != "untestable"],
        "untestable": {a.id: a.untestable for a in found.atoms if a.kind == "untestable"},
        "cpu_minutes": round(stage.bench.spent_s / 60, 2),
        "budget_minutes": round(found.cpu_budget_s / 60, 2),
        "equally_good": [_scored(t, on_last[0]) for t in equal],
        "identified": len(kinds) == 1,
        "nearest": [_scored(t, tried[0]) for t in tried[:_NEAREST]],
        "never_together": [asdict(pair) for pair in pairs] if found.score == "claims" else [],
    }


def _atom(found: Explanations, name: str, level: str) -> dict[str, Any]:
    atom = found.by_id[name.split("@")[0]]
    own = next((v for v in atom.levels or [] if v.key == level), None)
    return {
        "atom": name,
        "level": level,
        "title": (own and own.title) or atom.title,
        "reason": atom.reason,
        "source": atom.source,
        "kind": atom.kind,
        "outside_ledger": atom.outside_ledger or "",
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
        key: None if isinstance(item, float) and item != item else item
        for key, item in found.items()
    }


def merge_explanations(folders: Sequence[Path], data: Path) -> None:
    """Put the studies' tables together in `data`: explanations.csv and explained_cells.csv.

    Raises
    ------
    InputError
        A table is missing or of another version.
    """
    from replication.study.table import merge_tables

    for name, columns in (
        ("explanations", EXPLANATION_COLUMNS),
        ("explained_cells", EXPLAINED_COLUMNS),
    ):
        paths = [folder / f"{name}.csv" for folder in folders]
        merge_tables(paths, data / f"{name}.csv", columns)
