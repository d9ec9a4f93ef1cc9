"""Run interventions: is an effect there with its stated cause, and gone without it?"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from replication.design.config import load_study
from replication.design.design import Run
from replication.design.study_check import check_test, study_points
from replication.engines.catalogue import chosen_engine
from replication.engines.model import Engine
from replication.explore.machine import Machine, by_replicate, whole_runs
from replication.explore.trial import serves
from replication.metrics.metric import quantity
from replication.study.claim_model import RatioTest, ValueTest, sides
from replication.study.errors import InputError, check_known
from replication.study.files import digest_of
from replication.study.finding_model import load_findings
from replication.study.intervention import (
    CONFIG,
    Configuration,
    Intervention,
    load_interventions,
)
from replication.study.position import located, within
from replication.study.stated_cause import StatedCause
from replication.study.study import INTERVENTIONS, Study
from replication.study.table import INTERVENTION_COLUMNS, Row, read_rows, write_table
from replication.study.variation import apply, check_variation
from replication.study.verdict import Verdict
from replication.verdicts.claim import Judgement, judge_statistic
from replication.verdicts.comparison import compare
from replication.verdicts.wording import wording


def measure_interventions(root: Path, engine: str, machine: Machine, path: Path) -> None:
    """Run all interventions on an engine, and write their rows to `path`."""
    chosen = [one for one in load_interventions(root) if one.engine == engine]
    write_table(path, [measure(root, one, machine) for one in chosen], INTERVENTION_COLUMNS)


def merge_interventions(root: Path, folders: Sequence[Path], path: Path) -> None:
    """Write the rows in the folders of engines to `path`, in the order of the interventions.

    Interventions on other engines keep their rows of the committed table.
    """
    rows: dict[str, Row] = {}
    for source in [root / INTERVENTIONS, *(folder / INTERVENTIONS.name for folder in folders)]:
        if source.is_file():
            table = read_rows(source, INTERVENTION_COLUMNS)
            rows |= {row["intervention"]: row for row in table}
    order = [one.id for one in load_interventions(root)]
    write_table(path, [rows[name] for name in order if name in rows], INTERVENTION_COLUMNS)


def measure(root: Path, one: Intervention, machine: Machine) -> dict[str, object]:
    """Run an intervention; return its row."""
    study = load_study(root, one.study)
    gone = one.test.model_copy(update={"expect": one.gone})
    present = _judged(one, study, one.with_cause, one.test, machine)
    absent = _judged(one, study, one.without_cause, gone, machine)
    words = wording(study, one.test)
    return {
        "intervention": one.id,
        "sentence": one.sentence,
        "place": one.place,
        "study": one.study,
        "engine": one.engine,
        "statistic": words.statistic,
        "configuration_with": one.with_cause.words,
        "configuration_without": one.without_cause.words,
        "expected": f"{present.margin} with, {absent.margin} without",
        "measured_with": words.value(present.observed),
        "measured_without": words.value(absent.observed),
        "passing_with": str(present.passing or ""),
        "passing_without": str(absent.passing or ""),
        "holds": present.verdict == absent.verdict == Verdict.REPRODUCED,
        "generation": machine.engine.fingerprint(root).partition("-")[0],
        "scenarios": scenarios_digest(one, study, machine.engine),
    }


def _judged(
    one: Intervention,
    study: Study,
    configuration: Configuration,
    test: ValueTest | RatioTest,
    machine: Machine,
) -> Judgement:
    runs = runs_of(one, study, configuration, machine.engine)
    if refused := [refusal for run in runs if (refusal := machine.refusal(run))]:
        raise InputError(f"{CONFIG}: {one.id}: {configuration.words}: {refused[0]}")
    results = machine.results(study.id, by_replicate(runs))
    frames = [quantity(results, wanted).drop(columns="engine") for wanted in sides(test)]
    defined = [frame.dropna(subset="value") for frame in frames]
    return judge_statistic(test, compare(study, test, defined), wording(study, test))


def runs_of(
    one: Intervention, study: Study, configuration: Configuration, engine: Engine
) -> list[Run]:
    """Return the runs of one side of an intervention."""
    wanted = sides(one.test)
    named = {side.experiment for side in wanted}
    kept = [experiment for experiment in study.experiments if experiment.id in named]
    changed = study.model_copy(update={"experiments": kept})
    for variation in (one.both, configuration.set):
        changed = apply(changed, variation) if variation else changed
    runs = whole_runs(changed, engine.name, engine.version, one.replicates)
    return [run for run in runs if serves(run, wanted)]


def scenarios_digest(one: Intervention, study: Study, engine: Engine) -> str:
    """Return a hash of the scenarios of both sides, in their order."""
    runs = runs_of(one, study, one.with_cause, engine)
    runs += runs_of(one, study, one.without_cause, engine)
    return digest_of(" ".join(run.scenario_id for run in runs).encode())[:16]


def current_digest(root: Path, one: Intervention) -> str:
    """Return the digest that a current row of an intervention has."""
    return scenarios_digest(one, load_study(root, one.study), chosen_engine(one.engine))


def check_interventions(root: Path, studies: Iterable[str]) -> int:
    """Return how many interventions the studies have; InputError for one that cannot be run."""
    chosen = [one for one in load_interventions(root) if one.study in set(studies)]
    with located(root / CONFIG):
        for one in chosen:
            with within("interventions", one.id, words=f"intervention {one.id}"):
                _check_intervention(root, one)
    return len(chosen)


def _check_intervention(root: Path, one: Intervention) -> None:
    study = load_study(root, one.study)
    parts = {
        ("both",): one.both,
        ("with_cause", "set"): one.with_cause.set,
        ("without_cause", "set"): one.without_cause.set,
    }
    for place, variation in parts.items():
        if variation is not None:
            with within(*place):
                check_variation(study, variation)
    for side in (one.with_cause, one.without_cause):
        changed = study
        for variation in (one.both, side.set):
            changed = apply(changed, variation) if variation else changed
        with within("test"):
            check_test(changed, one.test, study_points(changed))


def check_causes(root: Path, study: Study) -> None:
    """Raise InputError for an intervention that a study's texts name and the file lacks."""
    threats = {f"threat {n}": one.causes for n, one in enumerate(study.notes.threats, start=1)}
    findings = {}
    for number, finding in enumerate(load_findings(root, study.id), start=1):
        statements = finding.statements()
        findings[f"finding {number}"] = [cause for said in statements for cause in said.causes]
    check_named(root, f"study {study.id}", threats | findings)


def check_named(root: Path, of: str, causes: Mapping[str, Sequence[StatedCause]]) -> None:
    """Raise InputError for an unknown intervention among the causes of texts, by their names."""
    known = {one.id for one in load_interventions(root)}
    for name, stated in causes.items():
        ids = [cause.intervention for cause in stated if cause.intervention]
        check_known(f"{of}, {name}: intervention", ids, known)
