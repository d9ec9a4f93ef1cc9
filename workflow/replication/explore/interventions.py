"""Run interventions: is an effect there with its stated cause, and gone without it?"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from replication.base.errors import InputError, check_known
from replication.base.files import digest_of
from replication.base.position import located, within
from replication.base.table import INTERVENTION_COLUMNS, INTERVENTIONS, Row, read_rows, write_table
from replication.design.config import load_study
from replication.design.design import Run
from replication.design.study_check import check_test, study_points
from replication.engines.model import Engine
from replication.explore.machine import Machine, by_replicate, whole_runs
from replication.explore.trial import serves
from replication.metrics.metric import defined
from replication.study.claim_model import RatioTest, ValueTest, sides
from replication.study.finding_model import load_findings
from replication.study.intervention import (
    CONFIG,
    Configuration,
    Intervention,
    load_interventions,
)
from replication.study.stated_cause import StatedCause
from replication.study.study import Study
from replication.study.variation import apply, check_variation
from replication.study.verdict import Verdict
from replication.verdicts.claim import Judgement, judge_statistic
from replication.verdicts.comparison import compare
from replication.verdicts.wording import wording


def measure_interventions(root: Path, engine: str, machine: Machine, path: Path) -> None:
    """Run all interventions on an engine, and write their rows to `path`."""
    listed = load_interventions(root)
    rows = [measure(root, each, machine) for each in listed if each.engine == engine]
    write_table(path, rows, INTERVENTION_COLUMNS)


def merge_interventions(root: Path, folders: Sequence[Path], path: Path) -> None:
    """Write the rows in the folders of engines to `path`, in the order of the interventions.

    Interventions on other engines keep their rows of the committed table.
    """
    rows: dict[str, Row] = {}
    for source in [root / INTERVENTIONS, *(folder / INTERVENTIONS.name for folder in folders)]:
        if source.is_file():
            table = read_rows(source, INTERVENTION_COLUMNS)
            rows |= {row["intervention"]: row for row in table}
    order = [intervention.id for intervention in load_interventions(root)]
    write_table(path, [rows[name] for name in order if name in rows], INTERVENTION_COLUMNS)


def measure(root: Path, intervention: Intervention, machine: Machine) -> dict[str, object]:
    """Run an intervention; return its row."""
    study = load_study(root, intervention.study)
    gone = intervention.test.model_copy(update={"expect": intervention.gone})
    present = _judged(intervention, study, intervention.with_cause, intervention.test, machine)
    absent = _judged(intervention, study, intervention.without_cause, gone, machine)
    words = wording(study, intervention.test)
    return {
        "intervention": intervention.id,
        "sentence": intervention.sentence,
        "place": intervention.place,
        "study": intervention.study,
        "engine": intervention.engine,
        "statistic": words.statistic,
        "configuration_with": intervention.with_cause.words,
        "configuration_without": intervention.without_cause.words,
        "expected": f"{present.margin} with, {absent.margin} without",
        "measured_with": words.value(present.observed),
        "measured_without": words.value(absent.observed),
        "passing_with": str(present.passing or ""),
        "passing_without": str(absent.passing or ""),
        "holds": present.verdict == absent.verdict == Verdict.REPRODUCED,
        "generation": machine.engine.fingerprint(root).partition("-")[0],
        "scenarios": scenarios_digest(intervention, study, machine.engine),
    }


def _judged(
    intervention: Intervention,
    study: Study,
    configuration: Configuration,
    test: ValueTest | RatioTest,
    machine: Machine,
) -> Judgement:
    runs = runs_of(intervention, study, configuration, machine.engine)
    if refused := [refusal for run in runs if (refusal := machine.refusal(run))]:
        raise InputError(f"{CONFIG}: {intervention.id}: {configuration.words}: {refused[0]}")
    results = machine.results(study.id, by_replicate(runs))
    frames = [defined(results, wanted) for wanted in sides(test)]
    return judge_statistic(test, compare(study, test, frames), wording(study, test))


def runs_of(
    intervention: Intervention, study: Study, configuration: Configuration, engine: Engine
) -> list[Run]:
    """Return the runs of one side of an intervention."""
    wanted = sides(intervention.test)
    named = {side.experiment for side in wanted}
    kept = [experiment for experiment in study.experiments if experiment.id in named]
    changed = _varied(intervention, study.model_copy(update={"experiments": kept}), configuration)
    runs = whole_runs(changed, engine.name, engine.version, intervention.replicates)
    return [run for run in runs if serves(run, wanted)]


def _varied(intervention: Intervention, study: Study, configuration: Configuration) -> Study:
    """Return the study with what both sides of an intervention set, and with a side of it."""
    for variation in (intervention.both, configuration.set):
        study = apply(study, variation) if variation else study
    return study


def scenarios_digest(intervention: Intervention, study: Study, engine: Engine) -> str:
    """Return a hash of the scenarios of both sides, in their order."""
    runs = runs_of(intervention, study, intervention.with_cause, engine)
    runs += runs_of(intervention, study, intervention.without_cause, engine)
    return digest_of(" ".join(run.scenario_id for run in runs).encode())[:16]


def check_interventions(root: Path, studies: Iterable[str]) -> int:
    """Return how many interventions the studies have; InputError for one that cannot be run."""
    known = set(studies)
    chosen = [each for each in load_interventions(root) if each.study in known]
    with located(root / CONFIG):
        for intervention in chosen:
            name = intervention.id
            with within("interventions", name, words=f"intervention {name}"):
                _check_intervention(root, intervention)
    return len(chosen)


def _check_intervention(root: Path, intervention: Intervention) -> None:
    study = load_study(root, intervention.study)
    parts = {
        ("both",): intervention.both,
        ("with_cause", "set"): intervention.with_cause.set,
        ("without_cause", "set"): intervention.without_cause.set,
    }
    for place, variation in parts.items():
        if variation is not None:
            with within(*place):
                check_variation(study, variation)
    for side in (intervention.with_cause, intervention.without_cause):
        changed = _varied(intervention, study, side)
        with within("test"):
            check_test(changed, intervention.test, study_points(changed))


def check_causes(root: Path, study: Study) -> None:
    """Raise InputError for an intervention that a study's texts name and the file lacks."""
    threats = {}
    for number, threat in enumerate(study.notes.threats, start=1):
        threats[f"threat {number}"] = threat.causes
    findings: dict[str, list[StatedCause]] = {}
    for number, finding in enumerate(load_findings(root, study.id), start=1):
        causes = findings.setdefault(f"finding {number}", [])
        for statement in finding.statements():
            causes += statement.causes
    check_named(root, f"study {study.id}", threats | findings)


def check_named(root: Path, of: str, causes: Mapping[str, Sequence[StatedCause]]) -> None:
    """Raise InputError for an unknown intervention among the causes of texts, by their names."""
    known = {intervention.id for intervention in load_interventions(root)}
    for name, stated in causes.items():
        ids = [cause.intervention for cause in stated if cause.intervention]
        check_known(f"{of}, {name}: intervention", ids, known)
