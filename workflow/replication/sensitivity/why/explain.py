"""Explains one study: searches, judges what is found on what was not seen, and writes it down."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from replication.judge.causes.atom import Explanations, load_explanations
from replication.judge.causes.atom_check import check_explanations
from replication.measure.cell_map import map_cells
from replication.measure.trace_folder import find_folder, trace_files
from replication.plan.config import load_study
from replication.sensitivity.machine import Machine
from replication.sensitivity.why import finding
from replication.sensitivity.why.account import Stage, write_account
from replication.sensitivity.why.bench import Bench
from replication.sensitivity.why.distribution import Distance, distances
from replication.sensitivity.why.finding import Finding, Leaving, Share
from replication.sensitivity.why.null import null_p_cells, null_p_claims
from replication.sensitivity.why.part import rungs, whole
from replication.sensitivity.why.reader import Reader
from replication.sensitivity.why.search import Found, Search
from replication.sensitivity.why.set_up import DEFAULTS, SetUp, Space
from replication.sensitivity.why.table import holding
from replication.sensitivity.why.trial import CellJudge, ClaimJudge, Trials
from replication.study.errors import InputError
from replication.study.published import published_path, read_published
from replication.study.sensitivity_settings import explanations_path, load_sensitivity
from replication.study.verdict import Verdict

#: Of the budget, what is kept for the last stages at most.
_MOST_RESERVED = 0.4


def explain_study(root: Path, name: str, folder: Path, machine: Machine) -> Finding:
    """Search a study's best explanation; write explanation.json and its tables to `folder`.

    Parameters
    ----------
    root, name
        The project's folder and the study's id.
    folder
        Where the study's sensitivity is.
    machine
        Where runs are made and kept.

    Raises
    ------
    InputError, RunError
        Files are missing or do not fit together; a run fails.
    """
    found = load_explanations(root, name)
    if found is None:
        raise InputError(f"{explanations_path(root, name)}: no such file; study {name} needs one")
    stage = _stage(root, name, found, machine)
    reserve_s = _reserve_s(stage)
    space = stage.bench.space
    searched = Search(space, stage.trials, stage.rungs, stage.settings, stage.seed, reserve_s).run()
    judge = stage.trials.judge
    if isinstance(judge, CellJudge):
        result = _by_cells(stage, judge, searched)
    else:
        assert isinstance(judge, ClaimJudge)
        result = _by_claims(stage, judge, searched)
    write_account(folder, stage, found, result)
    return result


def _stage(root: Path, name: str, found: Explanations, machine: Machine) -> Stage:
    study, settings = load_study(root, name), load_sensitivity(root)
    numbers = read_published(published_path(root, name))
    # A set-up is run once: it has no spread.
    cells = [cell for cell in map_cells(study, numbers) if not cell.is_spread]
    check_explanations(found, study, cells)
    space = Space(study, found)
    bench = Bench(space, cells, machine, found.cpu_budget_s)
    judge: CellJudge | ClaimJudge = ClaimJudge(bench, settings.explanation)
    if found.score == "cells":
        judge = CellJudge(bench, Reader(study, found, cells), settings.explanation)
    return Stage(
        root,
        Trials(bench, judge),
        rungs(found, study, cells),
        whole(found, study, cells),
        settings.explanation,
        settings.seed,
        machine.engine,
    )


def _reserve_s(stage: Stage) -> float:
    """Return what the finalists, the waterfall and the unseen part should cost."""
    bench, last = stage.bench, stage.rungs[-1]
    if last.levels == stage.rungs[0].levels == stage.whole.levels:
        # All are run by then, but perhaps for the best without one of its atoms.
        return bench.cost_s(DEFAULTS, last)
    one_s, whole_s = bench.cost_s(DEFAULTS, last), bench.cost_s(DEFAULTS, stage.whole)
    wanted_s = (stage.settings.finalists + 2) * one_s + 2 * whole_s
    return min(wanted_s, _MOST_RESERVED * bench.budget_s)


def _by_cells(stage: Stage, judge: CellJudge, found: Found) -> Finding:
    bench, last = stage.bench, stage.rungs[-1]
    before, after = stage.trials.of([DEFAULTS, found.best.set_up], stage.whole) * (
        2 if found.best.set_up == DEFAULTS else 1
    )
    stated = finding.of_defaults(found.defaults)
    rows_before, rows = (
        list(finding.cell_rows(judge, trial, ran, stage.whole, stage.engine))
        for trial, ran in ((stated, before), (found.best, after))
    )
    count = stage.settings.replicates_of_ranks
    for trial, own in ((stated, rows_before), (found.best, rows)):
        finding.by_range(judge, trial, own, stage.whole, count)
    seen, unseen = (finding.share(rows_before, rows, kind) for kind in (True, False))
    gain_bits = judge.stated_bits(found.defaults, last) - found.best.total
    first = stage.rungs[0]
    on_first = stage.trials.of([found.best.set_up], first)[0]
    p = null_p_cells(stage.trials, judge, first, on_first, stage.seed)
    leaving = finding.leaving_out(judge, found, last)
    word, reasons = finding.word_of(gain_bits, p, seen, unseen, leaving, stage.settings)
    readings = finding.table_readings(judge, found.best)
    claims_before, claims_after = (
        finding.judged_claims(bench.space.study, bench.results([set_up], stage.whole), read)
        for set_up, read in ((DEFAULTS, {}), (found.best.set_up, readings))
    )
    return Finding(
        word,
        found.best.pairs,
        found.best.bits,
        gain_bits,
        p,
        seen,
        unseen,
        tuple(leaving),
        claims_before,
        claims_after,
        rows,
        reasons,
        (finding.impossible(judge, stated), finding.impossible(judge, found.best)),
        _trace_distances(stage, found.best.set_up),
    )


def _trace_distances(stage: Stage, set_up: SetUp) -> tuple[Distance, ...]:
    """Return how far replicates are from the study's raw traces, where those are there."""
    study, count = stage.bench.space.study, stage.settings.replicates_of_ranks
    files = trace_files(find_folder(stage.root), study.id)
    if not files:
        return ()
    published = published_path(stage.root, study.id)
    before, after = (stage.bench.replicated(one, stage.whole, count) for one in (DEFAULTS, set_up))
    return tuple(distances(study, published, files, before, after))


def _by_claims(stage: Stage, judge: ClaimJudge, found: Found) -> Finding:
    hidden = set(stage.bench.space.explanations.unseen.claims)
    before, after = (
        judge.verdicts(stage.bench.results([trial.set_up], stage.whole), stage.whole)
        for trial in (found.defaults, found.best)
    )
    seen, unseen = (
        _claims_held(before, after, {c for c in before if (c in hidden) is not kind})
        for kind in (True, False)
    )
    gain_bits = found.defaults.total - found.best.total
    first = stage.rungs[0]
    on_first = stage.trials.of([found.best.set_up], first)[0]
    p = null_p_claims(stage.trials, judge, first, on_first, stage.seed)
    leaving = [
        Leaving(atom, level, trial.total - found.best.total, holding(trial.verdicts))
        for (atom, level), trial in zip(found.best.set_up, found.waterfall, strict=True)
    ]
    word, reasons = finding.word_of(gain_bits, p, seen, unseen, leaving, stage.settings)
    return Finding(
        word,
        found.best.pairs,
        found.best.bits,
        gain_bits,
        p,
        seen,
        unseen,
        tuple(leaving),
        before,
        after,
        [],
        reasons,
    )


def _claims_held(before: Mapping[str, str], after: Mapping[str, str], own: set[str]) -> Share:
    first, last = (
        sum(verdict == Verdict.REPRODUCED for claim, verdict in verdicts.items() if claim in own)
        for verdicts in (before, after)
    )
    return Share(len(own), first, last, math.nan, math.nan)
