"""The generated sweep: as many runs as asked for, all short, in a project that validates."""

from pathlib import Path

import pytest
from bench.scale import SETTINGS, make_project, sizes
from replication.plan.pipeline import Pipeline
from replication.study.errors import InputError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("scenarios", [10, 250, 1000])
def test_the_sweep_has_as_many_different_short_runs_as_asked_for(tmp_path, scenarios):
    make_project(ROOT, tmp_path, scenarios, engines=False)
    plan = Pipeline.load(tmp_path, SETTINGS).plan
    (batches,), (runs,) = plan.batches.values(), plan.runs.values()
    assert len({name for batch in batches for name in batch.scenarios}) == scenarios
    assert max(run.scenario.duration_s for run in runs) == 2.0
    assert max(batch.cost_s / len(batch.scenarios) for batch in batches) < 0.1


@pytest.mark.parametrize("text", ["0", "15", "ten", "", "100,-10"])
def test_sizes_that_no_sweep_has_are_refused(text):
    with pytest.raises(InputError, match="--scenarios"):
        sizes(text)


def test_sizes_are_listed():
    assert sizes("100, 1000") == [100, 1000]
