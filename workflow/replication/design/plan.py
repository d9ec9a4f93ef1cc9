"""The plan: what a configuration runs, kept on disk so that a rerun designs nothing again."""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from replication.base.files import digest_of, sha256_of, write_text
from replication.base.position import located
from replication.design.config import Config, load_study, load_tier, study_files
from replication.design.design import (
    Batch,
    batch_cost,
    batch_runs,
    design_study,
    engines_by_setup,
    repeat_warnings,
)
from replication.design.input_hashes import code, value_hash
from replication.design.notebook_names import notebook_names
from replication.design.study_check import check_series, check_study
from replication.metrics.metric_model import digested_experiments, wanted_quantities
from replication.metrics.trace_source import has_traces
from replication.simulate.store import Totals, count_runs
from replication.study.finding_model import findings_path, load_findings
from replication.study.published import published_path
from replication.study.scenario import Host
from replication.study.setup import Setup

#: The kept plan, below the project's folder.
KEPT = Path("data/reproduced/plan.json")


@dataclass(frozen=True)
class StudyPlan:
    """The runs of a study, and what else its rules depend on.

    `setups` are the engines of each set-up. `features` is a hash of the features that are computed
    when its runs are collected.
    """

    original_engine: str
    notebooks: list[str]
    has_traces: bool
    features: str
    points: int
    setups: dict[Setup, list[str]]
    timer_hz: list[int]
    warnings: list[str]
    batches: list[Batch]

    def in_words(self) -> str:
        """Return the set-ups and their engines, for readers."""
        return " and ".join(f"{setup} on {', '.join(on)}" for setup, on in self.setups.items())


@dataclass(frozen=True)
class Plan:
    """The runs of a configuration.

    `key` is a hash of its inputs, `named` the part of a batch's name by engine, and `batch_cost_s`
    the CPU time that batches aim at.
    """

    key: str
    named: dict[str, str]
    batch_cost_s: float
    studies: dict[str, StudyPlan]

    @functools.cached_property
    def batches(self) -> dict[str, Batch]:
        """Batches by id."""
        by_id: dict[str, Batch] = {}
        for study in self.studies.values():
            by_id |= {batch.id: batch for batch in study.batches}
        return by_id

    def batch_ids(self, *studies: str) -> list[str]:
        """Return the ids of studies' batches."""
        return [batch.id for batch in self.batches.values() if batch.study in studies]

    def timer_hz(self) -> list[int]:
        """Return the timer frequencies of the plan's kernels, and the default one."""
        used: set[int] = {Host().timer_hz}
        for study in self.studies.values():
            used.update(study.timer_hz)
        return sorted(used)

    def totals(self, stores: Mapping[str, Path], *studies: str) -> Totals:
        """Return the expected CPU seconds of each scenario of `studies`, by its engine's store."""
        totals: Totals = {}
        for study in studies:
            for batch in self.studies[study].batches:
                totals.setdefault(stores[batch.engine], {}).update(batch.scenarios)
        return totals

    def summary(self, stores: Mapping[str, Path]) -> Iterator[str]:
        """Yield a line for each study and each warning, and one for the total."""
        for name, study in self.studies.items():
            done, total, remaining_s = count_runs(self.totals(stores, name))
            yield (
                f"{name}: {study.points} points, {study.in_words()}, {total} scenarios in "
                f"{len(study.batches)} batches, {done} done; "
                f"about {remaining_s:.0f} s of CPU remaining"
            )
            yield from (f"warning: {name}, {warning}" for warning in study.warnings)
        done, total, remaining_s = count_runs(self.totals(stores, *self.studies))
        remaining = f"about {remaining_s / 60:.1f} CPU minutes remaining"
        yield f"total: {total} scenarios, {done} done; {remaining}"


_FORMAT = TypeAdapter(Plan)


def load_plan(root: Path, config: Config, names: list[str], named: dict[str, str]) -> Plan:
    """Return the kept plan if its inputs are unchanged, else make and keep a new one."""
    inputs = [root / "configs" / "tiers" / f"{config.tier}.yaml"]
    for name in names:
        findings = [path for path in [findings_path(root, name)] if path.is_file()]
        inputs += [*study_files(root, name), published_path(root, name), *findings]
    settings = config.model_dump(mode="json")
    room = sha256_of(*Path(__file__).parent.glob("*.py"))
    contents = [sha256_of(path) for path in inputs]
    key = value_hash([settings, names, named, code(), room, contents])
    with contextlib.suppress(OSError, ValueError):
        kept = _FORMAT.validate_json((root / KEPT).read_bytes())
        if kept.key == key:
            return kept
    tier = load_tier(root, config.tier)
    studies = {name: load_study(root, name) for name in names}
    runs = {}
    for name, study in studies.items():
        with located(*study_files(root, name)):
            check_study(study, published_path(root, name))
            runs[name] = design_study(study, tier, list(named), config.ns3_version)
            check_series(runs[name], root)
    target_s = batch_cost(runs.values(), config.batch_cost_s or tier.batch_cost_s)
    planned = {}
    for name, designed in runs.items():
        study = studies[name]
        setups = engines_by_setup(study, tier, list(named))
        wanted = wanted_quantities(study, load_findings(root, name))
        features = "".join(quantity.to_json() for quantity in wanted)
        features += ",".join(digested_experiments(study))
        planned[name] = StudyPlan(
            original_engine=study.original_system.engine,
            notebooks=notebook_names(study, setups[Setup.DEFAULTS]),
            has_traces=has_traces(study),
            features=digest_of(features.encode())[:16],
            points=len({(run.experiment, run.point) for run in designed}),
            setups=setups,
            timer_hz=sorted({run.scenario.host.timer_hz for run in designed if not run.refusal}),
            warnings=list(repeat_warnings(designed)),
            batches=batch_runs(designed, named, target_s),
        )
    plan = Plan(key, named, target_s, planned)
    with contextlib.suppress(OSError):
        write_text(root / KEPT, _FORMAT.dump_json(plan).decode())
    return plan
