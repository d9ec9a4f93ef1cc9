"""Loading results: what is joined, and what is said when a file is missing or damaged."""

import json

import pandas as pd
import pytest
from replication.metrics.collect import collect_study
from replication.metrics.metric import quantity
from replication.metrics.results import Results
from replication.study.claim_model import Quantity
from replication.study.errors import InputError
from replication.study.files import atomic, write_text


@pytest.fixture
def loaded(world, sampled):
    world.results(world.study(), replicates=2, series=lambda **_: sampled([1, 2, 3]))
    return world.folder


def load(folder):
    return Results.load(folder, "synthetic")


def test_runs_are_those_of_the_levels_asked_for(loaded):
    runs = load(loaded).runs("sweep", {"variant": ["reno", "vegas"], "access": ["mid"]})
    assert len(runs) == 2 * 2
    assert set(runs["variant"]) == {"reno", "vegas"} and set(runs["access"]) == {"mid"}
    assert set(runs["replicate"]) == {0, 1}


@pytest.mark.parametrize("name", ["design/synthetic.csv", "results/synthetic/flows.parquet"])
def test_a_missing_file_is_named_with_the_remedy(loaded, name):
    (loaded / name).unlink()
    with pytest.raises(InputError, match=rf"{name}: .*run the workflow first"):
        load(loaded)


def test_a_feature_that_was_not_collected_is_named_with_the_remedy(world, loaded):
    collect_study(world.study(), loaded)
    wanted = Quantity(experiment="sweep", metric="window_reductions")
    assert len(quantity(load(loaded), wanted)) == 18
    with pytest.raises(InputError, match=r"no cwnd_peak_segments of every run .* `make report`"):
        quantity(load(loaded), wanted.model_copy(update={"metric": "cwnd_peak_segments"}))


def test_a_flow_that_is_there_twice_or_without_a_scenario_is_refused(loaded):
    path = loaded / "results/synthetic/flows.parquet"
    table = pd.read_parquet(path)
    with atomic(path) as target:
        pd.concat([table, table.iloc[[3]]]).to_parquet(target)
    with pytest.raises(InputError, match=r"flow tcp2 .* is there twice"):
        load(loaded)
    path = loaded / "design/scenarios/synthetic.json"
    scenarios = json.loads(path.read_text())
    gone, _ = scenarios.popitem()
    write_text(path, json.dumps(scenarios))
    with pytest.raises(InputError, match=gone):
        load(loaded)
