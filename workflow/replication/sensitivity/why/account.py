"""The account of a study's explanation: what was found and all that was tried, on disk."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from replication.judge.causes.atom import Explanations
from replication.sensitivity.why.bench import Bench
from replication.sensitivity.why.finding import Finding, Leaving, Share
from replication.sensitivity.why.part import StudyPart
from replication.sensitivity.why.set_up import in_words
from replication.sensitivity.why.table import (
    EXPLAINED_COLUMNS,
    EXPLANATION_COLUMNS,
    NAME,
    holding,
    made_from,
)
from replication.sensitivity.why.together import never_together
from replication.sensitivity.why.trial import Trial, Trials
from replication.study.files import write_text
from replication.study.scenario import canonical_json
from replication.study.sensitivity_settings import ExplanationSearch
from replication.study.storage.parquet import write_parquet
from replication.study.storage.table import write_table

#: The scenarios of the explanation's set-up: `replicate run` starts any of them.
SCENARIOS = "explained_scenarios.json"
#: Set-ups that are told as nearest to the best.
_NEAREST = 10


@dataclass
class Stage:
    """What the stages of explaining a study share."""

    root: Path
    trials: Trials
    rungs: list[StudyPart]
    whole: StudyPart
    settings: ExplanationSearch
    seed: int
    engine: str

    @property
    def bench(self) -> Bench:
        """What runs set-ups."""
        return self.trials.bench


def write_account(folder: Path, stage: Stage, found: Explanations, result: Finding) -> None:
    """Write explanation.json, its tables and tried.parquet to a folder."""
    write_table(folder / "explanations.csv", [_row(stage, found, result)], EXPLANATION_COLUMNS)
    rows = result.cells
    write_table(folder / "explained_cells.csv", rows, EXPLAINED_COLUMNS)
    write_parquet(_tried(stage.trials), folder / "tried.parquet")
    set_up = tuple(p for p in result.pairs if found.by_id[p[0].split("@")[0]].kind == "set-up")
    runs = stage.bench.runs(set_up, stage.whole) or []
    scenarios = {r.scenario_id: r.scenario.model_dump(mode="json") for r in runs if not r.refusal}
    write_text(folder / SCENARIOS, canonical_json(scenarios) + "\n")
    made = made_from(stage.root, found.study, stage.engine)
    document = _document(stage, found, result) | {"made_from": made}
    if result.distances:
        document["distances"] = [asdict(one) for one in result.distances]
    write_text(folder / NAME, canonical_json(document) + "\n")


def _row(stage: Stage, found: Explanations, result: Finding) -> dict[str, object]:
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
        "claims_before": holding(result.claims_before),
        "claims_after": holding(result.claims_after),
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


def _document(stage: Stage, found: Explanations, result: Finding) -> dict[str, Any]:
    on_last = stage.trials.on(stage.rungs[-1])
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
        "impossible": dict(zip(("before", "after"), result.impossible, strict=True)),
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
        "atom_title": atom.title,
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
        key: None if isinstance(item, float) and math.isnan(item) else item
        for key, item in found.items()
    }
