"""Evaluation of a study: its cells, claims and audit as tables, and what a tier can judge.

What can be judged is known before anything runs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from replication.base import table as tables
from replication.base.model import reaches
from replication.design.design import Run
from replication.design.study_check import check_study
from replication.metrics.cell_map import MappedCell
from replication.metrics.metric_model import COUNTS
from replication.metrics.results import Results
from replication.metrics.statistic import MINIMUM_REPLICATES
from replication.study.claim_model import Claim, NotTestable, Quantity, covers
from replication.study.study import Study
from replication.verdicts.audit import audit_study, check_decimals, impossible_cells
from replication.verdicts.cell import evaluate_cells
from replication.verdicts.claim import evaluate_claim
from replication.verdicts.published_run import LEAST_RUNS
from replication.verdicts.sample import Coverage
from replication.verdicts.verdict_table import merge_verdicts, write_verdicts


def evaluate_study(
    study: Study, published: Path, results: Sequence[Results], out_dir: Path
) -> None:
    """Judge one study by its results, one for each set-up; write its cells, claims and audit."""
    cells = check_study(study, published)
    audit = [*audit_study(study, cells), *check_decimals(study, cells)]
    coverages = tables.flat(Coverage.of_all(study, of_setup) for of_setup in results)
    claims = tables.flat(evaluate_claim(claim, coverages) for claim in study.claims)
    judged = evaluate_cells(cells, coverages, impossible_cells(audit))
    write_verdicts(out_dir, judged, claims)
    rows = [vars(finding) for finding in audit]
    tables.write_table(out_dir / "audit.csv", rows, tables.AUDIT_COLUMNS)


def merge(evaluations: Sequence[Path], primary: Mapping[str, str], out_dir: Path) -> None:
    """Join the studies' verdicts, self-consistency and audits in the given order, and count.

    Each folder has what `evaluate_study` and `self_consistency.write_self_consistency` wrote;
    `primary` has each study's primary engine. InputError: a file is missing or of another version.
    """
    columns = {"self_consistency": tables.SELF_CONSISTENCY_COLUMNS, "audit": tables.AUDIT_COLUMNS}
    tables.merge_tables(evaluations, columns, out_dir)
    merge_verdicts(evaluations, primary, out_dir)


def judgeable(study: Study, cells: Sequence[MappedCell], runs: Sequence[Run]) -> Iterator[str]:
    """Yield for each engine of a design how much it can judge, and why it cannot judge the rest."""
    claims = [claim for claim in study.claims if not isinstance(claim.test, NotTestable)]
    for engine in dict.fromkeys(run.engine for run in runs):
        of_engine = [run for run in runs if run.engine == engine]
        lacks = {
            "number": Counter(_lack(of_engine, cell.quantity, cell) for cell in cells),
            "claim": Counter(_claim_lacks(of_engine, claim) for claim in claims),
        }
        counts = [f"{of['']} of {of.total()} {what}s" for what, of in lacks.items() if of]
        why = []
        for reason, _ in (lacks["number"] + lacks["claim"]).most_common():
            if reason:
                who = [_counted(of[reason], what) for what, of in lacks.items() if of[reason]]
                why.append(f"{' and '.join(who)}: {reason}")
        reasons = f" ({'; '.join(why)})" if why else ""
        yield f"{engine} can judge {' and '.join(counts)}{reasons}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count > 1 else ''}"


def _claim_lacks(runs: Sequence[Run], claim: Claim) -> str:
    """Return what an engine's runs lack first to judge a claim; empty for nothing."""
    lacks = (_lack(runs, wanted) for wanted in claim.quantities())
    return next(filter(None, lacks), "")


def _lack(of_engine: Sequence[Run], wanted: Quantity, cell: MappedCell | None = None) -> str:
    """Return what an engine's runs lack to judge a quantity, or a number; empty for nothing."""
    runs = []
    for run in of_engine:
        if run.experiment == wanted.experiment and covers(wanted.where, run.levels):
            runs.append(run)
    ran = [run for run in runs if not run.refusal]
    if not ran:
        refusals = Counter(run.refusal for run in runs).most_common(1)
        return refusals[0][0] if refusals else "the tier runs none of the points"
    longest_s = max(run.scenario.duration_s for run in ran)
    if wanted.window_s and not reaches(longest_s, wanted.window_s[1]):
        start_s, stop_s = wanted.window_s
        return f"the window is {start_s:g} to {stop_s:g} s, and runs end at {longest_s:g} s"
    if cell is None:
        return ""
    if cell.not_comparable:
        return "the number measures something other than its metric"
    short = [run for run in ran if not reaches(run.scenario.duration_s, run.whole_s)]
    if wanted.metric in COUNTS and short:
        ends_s = min(run.scenario.duration_s for run in short)
        return f"counts need whole runs, and the tier's runs end at {ends_s:g} s"
    needed = 1
    if cell.is_spread:
        needed = MINIMUM_REPLICATES
    elif cell.cell.tolerance.factor is not None:
        needed = LEAST_RUNS
    replicates = min(run.replicates for run in ran)
    few = f"it takes {needed} runs of each point, and there are {replicates}"
    return few if replicates < needed else ""
