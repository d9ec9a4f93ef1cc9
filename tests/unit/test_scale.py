"""The generated sweep: as many runs as asked for, all short, in a project that validates."""

import math
from pathlib import Path

import pytest
from bench.scale import (
    SETTINGS,
    growth,
    make_project,
    read_sweeps,
    replicates,
    sizes,
    study_document,
    write,
)
from replication.plan.pipeline import Pipeline
from replication.report.parts.bench_model import Sweep
from replication.study.errors import InputError
from replication.study.study import Study

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("scenarios", [10, 250, 1000])
def test_the_sweep_has_as_many_different_short_runs_as_asked_for(tmp_path, scenarios):
    make_project(ROOT, tmp_path, scenarios)
    plan = Pipeline.load(tmp_path, SETTINGS).plan
    (batches,), (runs,) = plan.batches.values(), plan.runs.values()
    assert len({name for batch in batches for name in batch.scenarios}) == scenarios
    assert max(run.scenario.duration_s for run in runs) == 2.0
    assert max(batch.cost_s / len(batch.scenarios) for batch in batches) < 0.1


@pytest.mark.parametrize("scenarios", [50_000, 100_000])
def test_a_large_sweep_is_a_study_that_is_not_refused(scenarios):
    (experiment,) = Study.model_validate(study_document(scenarios)).experiments
    points = math.prod(len(factor.levels) for factor in experiment.factors)
    assert points * replicates(scenarios) == scenarios


@pytest.mark.parametrize("text", ["0", "15", "ten", "", "100,-10", "60010"])
def test_sizes_that_no_sweep_has_are_refused(text):
    with pytest.raises(InputError, match="--scenarios"):
        sizes(text)


def test_sizes_are_listed():
    assert sizes("100, 1000") == [100, 1000]


def sweep(scenarios: int, **changes: float) -> Sweep:
    times = dict.fromkeys(("plan_s", "dag_s", "no_op_s", "total_s", "simulate_s"), 1.0)
    counts = dict.fromkeys(("batches", "jobs", "snakemake_bytes", "largest_worker_bytes"), 1)
    counts |= dict.fromkeys(("store_entries", "files", "disk_bytes"), 100)
    values = {"scenarios": scenarios, "cores": 2, "largest_worker": "collect", **times, **counts}
    return Sweep.model_validate(values | changes)


def test_growth_is_judged_by_sweeps_each_ten_times_the_other():
    small = sweep(1000, plan_s=2.0, snakemake_bytes=200_000_000)
    large = sweep(10_000, plan_s=22.0, no_op_s=9.0, snakemake_bytes=1_000_000_000)
    largest = sweep(100_000, store_entries=6000, disk_bytes=1001)
    found = {figure.id: figure for figure in growth([small, large, largest])}
    assert (found["growth-plan-10000"].value, found["growth-plan-10000"].met) == (1.1, False)
    assert found["growth-snakemake-10000"].value == 0.5
    assert found["growth-snakemake-10000"].how == "1000 MB over ten times 200 MB"
    assert (found["growth-disk-100000"].value, found["growth-disk-100000"].met) == (1.001, False)
    assert found["growth-files-100000"].met
    assert (found["growth-no-op"].value, found["growth-no-op"].met) == (9.0, True)
    assert (found["growth-store"].value, found["growth-store"].met) == (0.06, False)


def test_growth_that_no_sweep_shows_is_listed_as_not_measured():
    found = {figure.id: figure for figure in growth([sweep(1000), sweep(10_000)])}
    assert found["growth-plan-10000"].value is not None
    assert found["growth-plan-100000"].value is None
    assert "make scale" in found["growth-plan-100000"].how
    assert {figure.id for figure in growth([])} == set(found) - {"growth-store"}


def test_sweeps_are_read_back_and_others_refused(tmp_path):
    path = tmp_path / "scale.json"
    assert read_sweeps(path) == []
    write([sweep(100)], path)
    assert read_sweeps(path) == [sweep(100)]
    path.write_text("[{}]")
    with pytest.raises(InputError, match="make scale"):
        read_sweeps(path)
